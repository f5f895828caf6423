// Tests that arithmetic on sizes follows Python.
#include <gtest/gtest.h>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::IValue;

IValue call(const std::string& name, std::vector<IValue> numbers) {
  const Function function = symbolic_function(name);
  if (function == nullptr) throw std::runtime_error("no " + name);
  torch::jit::Stack stack(numbers.begin(), numbers.end());
  function(stack);
  EXPECT_EQ(stack.size(), 1u);
  return stack.at(0);
}
int64_t whole(const std::string& name, int64_t a, int64_t b) {
  return call(name, {a, b}).toInt();
}

TEST(ProgramSymbols, DivisionRoundsDownAsPythonDoes) {
  EXPECT_EQ(whole("_operator.floordiv", 7, 2), 3);
  EXPECT_EQ(whole("_operator.floordiv", -7, 2), -4);
  EXPECT_EQ(whole("_operator.floordiv", 7, -2), -4);
  EXPECT_EQ(whole("_operator.floordiv", -8, 2), -4);
  EXPECT_EQ(whole("_operator.mod", -7, 3), 2);
  EXPECT_EQ(whole("_operator.mod", 7, -3), -2);
  EXPECT_THROW(whole("_operator.mod", 7, 0), c10::Error);
  EXPECT_EQ(call("_operator.truediv", {7, 2}).toDouble(), 3.5);
  EXPECT_EQ(call("_operator.floordiv", {7.5, 2}).toDouble(), 3.0);
}

TEST(ProgramSymbols, WholeNumbersStayWholeAndMixedOnesBecomeReal) {
  EXPECT_TRUE(call("_operator.mul", {3, 4}).isInt());
  EXPECT_EQ(call("_operator.mul", {3, 0.5}).toDouble(), 1.5);
  EXPECT_EQ(whole("_operator.pow", 2, 10), 1024);
  EXPECT_EQ(call("_operator.pow", {2, -1}).toDouble(), 0.5);
  EXPECT_THROW(whole("_operator.pow", 10, 40), c10::Error) << "overflow";
  EXPECT_EQ(whole("torch.sym_max", 3, 9), 9);
  EXPECT_EQ(whole("torch.sym_min", 3, 9), 3);
}

TEST(ProgramSymbols, RoundsAndCompares) {
  EXPECT_EQ(call("builtins.round", {2.5}).toInt(), 2);
  EXPECT_EQ(call("builtins.round", {3.5}).toInt(), 4);
  EXPECT_EQ(call("math.ceil", {-1.5}).toInt(), -1);
  EXPECT_EQ(call("math.trunc", {-1.5}).toInt(), -1);
  EXPECT_THROW(call("math.ceil", {INFINITY}), c10::Error);
  EXPECT_TRUE(call("_operator.ge", {3, 3}).toBool());
  EXPECT_FALSE(call("torch.sym_not", {true}).toBool());
  EXPECT_EQ(call("torch.sym_ite", {false, 1, 2}).toInt(), 2);
  EXPECT_EQ(symbolic_function("os.system"), nullptr);
}

}  // namespace
}  // namespace sinew::model
