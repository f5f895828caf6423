// Tests that arithmetic on sizes follows Python.
#include <gtest/gtest.h>

#include <limits>

#include "base/expected_error.h"
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

std::string refusal(const std::string& name, std::vector<IValue> numbers) {
  return error_of([&] { call(name, std::move(numbers)); });
}
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(), kHighest = std::numeric_limits<int64_t>::max();

TEST(ProgramSymbols, DivisionRoundsDownAsPythonDoes) {
  EXPECT_EQ(whole("_operator.floordiv", 7, 2), 3);
  EXPECT_EQ(whole("_operator.floordiv", -7, 2), -4);
  EXPECT_EQ(whole("_operator.floordiv", 7, -2), -4);
  EXPECT_EQ(whole("_operator.floordiv", -8, 2), -4);
  EXPECT_EQ(whole("_operator.mod", -7, 3), 2);
  EXPECT_EQ(whole("_operator.mod", 7, -3), -2);
  EXPECT_ERROR(refusal("_operator.mod", {7, 0}), "MODEL_SIZE_INVALID", "by zero");
  EXPECT_EQ(call("_operator.truediv", {7, 2}).toDouble(), 3.5);
  EXPECT_EQ(call("_operator.floordiv", {7.5, 2}).toDouble(), 3.0);
}

TEST(ProgramSymbols, WholeNumbersStayWholeAndMixedOnesBecomeReal) {
  EXPECT_TRUE(call("_operator.mul", {3, 4}).isInt());
  EXPECT_EQ(call("_operator.mul", {3, 0.5}).toDouble(), 1.5);
  EXPECT_EQ(whole("_operator.pow", 2, 10), 1024);
  EXPECT_EQ(call("_operator.pow", {2, -1}).toDouble(), 0.5);
  EXPECT_ERROR(refusal("_operator.pow", {10, 40}), "MODEL_SIZE_INVALID", "10 ** 40");
  EXPECT_EQ(whole("torch.sym_max", 3, 9), 9);
  EXPECT_EQ(whole("torch.sym_min", 3, 9), 3);
}

TEST(ProgramSymbols, RoundsAndCompares) {
  EXPECT_EQ(call("builtins.round", {2.5}).toInt(), 2);
  EXPECT_EQ(call("builtins.round", {3.5}).toInt(), 4);
  EXPECT_EQ(call("math.ceil", {-1.5}).toInt(), -1);
  EXPECT_EQ(call("math.trunc", {-1.5}).toInt(), -1);
  EXPECT_ERROR(refusal("math.ceil", {INFINITY}), "MODEL_SIZE_INVALID", "inf");
  EXPECT_TRUE(call("_operator.ge", {3, 3}).toBool());
  EXPECT_FALSE(call("torch.sym_not", {true}).toBool());
  EXPECT_EQ(call("torch.sym_ite", {false, 1, 2}).toInt(), 2);
  EXPECT_EQ(symbolic_function("os.system"), nullptr);
}

// Each of these operations wraps around, traps or never ends in plain C++.
TEST(ProgramSymbols, RefusesWhatDoesNotFitInto64Bits) {
  const std::tuple<const char*, int64_t, int64_t> cases[] = {
      {"_operator.add", kHighest, 1},      {"_operator.add", kLowest, -1},    {"_operator.sub", kLowest, 1},
      {"_operator.sub", 0, kLowest},       {"_operator.mul", kHighest, 2},    {"_operator.mul", kLowest, -1},
      {"_operator.floordiv", kLowest, -1}, {"_operator.pow", 2, 63},          {"_operator.pow", 2, kHighest},
      {"_operator.pow", kLowest, 2},       {"_operator.pow", 3, 1 << 30},     {"_operator.lshift", 1, 63},
      {"_operator.lshift", 1, kHighest},   {"_operator.lshift", kHighest, 1},
  };
  for (const auto& [name, a, b] : cases) {
    EXPECT_ERROR(refusal(name, {a, b}), "MODEL_SIZE_INVALID", "does not fit into 64 bits") << name << a << b;
  }
  EXPECT_ERROR(refusal("_operator.neg", {kLowest}), "MODEL_SIZE_INVALID", "does not fit into 64 bits");
}

TEST(ProgramSymbols, RefusesWhatHasNoValue) {
  const std::tuple<const char*, IValue, IValue> cases[] = {
      {"_operator.floordiv", 7, 0}, {"_operator.floordiv", 7.0, 0}, {"_operator.mod", 7, 0.0},
      {"_operator.truediv", 7, 0},  {"_operator.pow", 0, -1},       {"_operator.pow", -2.0, 0.5},
      {"_operator.lshift", 1, -1},  {"_operator.rshift", 1, -1},    {"_operator.and_", 1.5, 1},
      {"_operator.add", "text", 1},
  };
  for (const auto& [name, a, b] : cases)
    EXPECT_ERROR(refusal(name, {a, b}), "MODEL_SIZE_INVALID", "") << name << a << b;
  EXPECT_ERROR(refusal("torch.sym_sqrt", {-1.0}), "MODEL_SIZE_INVALID", "");
  EXPECT_ERROR(refusal("torch.sym_int", {NAN}), "MODEL_SIZE_INVALID", "");
  EXPECT_ERROR(refusal("_operator.add", {1}), "MODEL_SIZE_INVALID", "takes 2 numbers, but gets 1");
  EXPECT_ERROR(refusal("_operator.neg", {1, 2}), "MODEL_SIZE_INVALID", "takes 1 numbers, but gets 2");
}

TEST(ProgramSymbols, TheEdgesOf64Bits) {
  EXPECT_EQ(whole("_operator.mod", kLowest, -1), 0);
  EXPECT_EQ(whole("_operator.mod", kLowest, kHighest), kHighest - 1);
  EXPECT_EQ(whole("_operator.floordiv", kLowest, 1), kLowest);
  EXPECT_EQ(whole("_operator.pow", -2, 63), kLowest);
  EXPECT_EQ(whole("_operator.pow", 1, kHighest), 1);
  EXPECT_EQ(whole("_operator.pow", -1, kHighest), -1);
  EXPECT_EQ(whole("_operator.pow", 0, kHighest), 0);
  EXPECT_EQ(whole("_operator.pow", 0, 0), 1);
  EXPECT_EQ(whole("_operator.pow", 7, 20), 79792266297612001);
  EXPECT_EQ(whole("_operator.lshift", -1, 62), -(int64_t{1} << 62));
  EXPECT_EQ(whole("_operator.lshift", 0, kHighest), 0);
  EXPECT_EQ(whole("_operator.rshift", -5, 1), -3);
  EXPECT_EQ(whole("_operator.rshift", kHighest, kHighest), 0);
  EXPECT_EQ(call("torch.sym_int", {kHighest}).toInt(), kHighest) << "no double in between";
}

}  // namespace
}  // namespace sinew::model
