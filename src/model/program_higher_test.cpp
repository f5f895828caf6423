// Tests higher-order operators, each with a body that the test builds.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "base/expected_error.h"
#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::IValue;
using torch::jit::Stack;

Operand slot(Slot place) {
  Operand operand;
  operand.kind = Operand::Kind::slot;
  operand.slot = place;
  return operand;
}

// body(x, weight): linear(x, weight)
HigherOrder with_linear(const std::string& name) {
  Instruction linear;
  linear.target = "aten::linear";
  linear.op = c10::Dispatcher::singleton().findSchema({"aten::linear", ""});
  linear.operands = {slot(0), slot(1), Operand()};
  linear.results.resize(1);
  linear.results[0].slot = 2;
  Plan body;
  body.slots = 3;
  body.inputs = {0, 1};
  body.instructions = {linear};
  body.outputs = {slot(2)};
  return {higher_order_function(name), {body}};
}

class Autocast : public testing::Test {
 protected:
  torch::Tensor call(const torch::Tensor& x, bool cache = true) {
    Stack stack = {"cpu", static_cast<int64_t>(at::kBFloat16), true, cache, x, weight_};
    block_.run(block_, stack, /*training=*/true);
    return stack.at(0).toTensor();
  }

  HigherOrder block_ = with_linear("wrap_with_autocast");
  torch::Tensor weight_ = torch::ones({1, 1}).set_requires_grad(true);
};

// The replica's parameter stays the same object in every step; only its values change.
TEST_F(Autocast, ComputesWithTheCurrentWeight) {
  const torch::Tensor x = torch::full({1, 1}, 2.0);
  EXPECT_EQ(call(x).item<float>(), 2);
  EXPECT_EQ(call(x).scalar_type(), at::kBFloat16);
  for (const float now : {5.0F, 7.0F}) {
    const torch::NoGradGuard no_grad;
    weight_.set_data(torch::full({1, 1}, now));
    const torch::AutoGradMode with_gradients(true);
    const torch::Tensor made = call(x);
    EXPECT_EQ(made.item<float>(), 2 * now);
    EXPECT_EQ(torch::autograd::grad({made.sum()}, {weight_})[0].item<float>(), 2);
  }
}

TEST_F(Autocast, RestoresTheSettings) {
  for (const bool cached : {true, false}) {
    at::autocast::set_autocast_cache_enabled(cached);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    const auto same = [&] {
      return !at::autocast::is_autocast_enabled(at::kCPU) && at::autocast::is_autocast_cache_enabled() == cached &&
             at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf;
    };
    call(torch::ones({1, 1}));
    EXPECT_TRUE(same());
    EXPECT_THROW(call(torch::ones({1, 3})), Error);  // shapes that do not fit
    EXPECT_TRUE(same());
  }
  at::autocast::set_autocast_cache_enabled(true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
}

// Returns a body that returns its inputs in this order.
Plan passing(size_t inputs, const std::vector<Slot>& outputs) {
  Plan body;
  body.slots = inputs;
  for (size_t i = 0; i < inputs; ++i) body.inputs.push_back(static_cast<Slot>(i));
  for (const Slot output : outputs) body.outputs.push_back(slot(output));
  return body;
}

c10::List<IValue> any_list(const std::vector<IValue>& values) {
  c10::List<IValue> list(c10::AnyType::get());
  for (const IValue& value : values) list.push_back(value);
  return list;
}

std::string refusal(const std::string& name, std::vector<Plan> bodies, const std::vector<IValue>& operands) {
  Instruction node;
  node.name = "node";
  node.target = name;
  node.higher = std::make_shared<HigherOrder>(HigherOrder{higher_order_function(name), std::move(bodies)});
  for (const IValue& value : operands) {
    Operand operand;
    operand.constant = value;
    node.operands.push_back(operand);
  }
  Plan plan;
  plan.instructions.push_back(std::move(node));
  begin_run();
  return error_of([&] { run_plan(plan, {}, true); });
}

// The file, not the operator, determines the numbers of operands and results. So they need not fit.
TEST(HigherOrderOperators, RefuseBodiesThatDoNotFit) {
  const torch::Tensor x = torch::ones({3, 2});
  const auto one = any_list({x}), none = any_list({});
  EXPECT_ERROR(refusal("cond", {passing(2, {0}), passing(2, {0})}, {true, one}), "MODEL_OPERATOR_FAILED",
               "gives 1 operands to a body that takes 2");
  EXPECT_ERROR(refusal("while_loop", {passing(1, {}), passing(1, {0})}, {one, none}), "MODEL_OPERATOR_FAILED",
               "a condition that gives 0 values");
  EXPECT_ERROR(refusal("scan", {passing(2, {})}, {one, one, none}), "MODEL_OPERATOR_FAILED",
               "gives 0 values for a carry of 1");
  EXPECT_ERROR(refusal("map_impl", {passing(1, {0})}, {any_list({1.5}), none}), "MODEL_OPERATOR_FAILED", "");
  EXPECT_ERROR(refusal("wrap_with_autocast", {passing(0, {})}, {"cpu", 1 << 20, true, true}), "MODEL_OPERATOR_FAILED",
               "unknown type");
  EXPECT_EQ(refusal("scan", {passing(2, {0, 1})}, {any_list({x}), one, none}), "");
}

TEST(HigherOrderOperators, LoopsEnd) {
  Plan forever;  // returns true
  forever.slots = 1;
  forever.inputs = {0};
  Operand yes;
  yes.constant = true;
  forever.outputs = {yes};
  const torch::Tensor x = torch::ones({1});
  EXPECT_ERROR(refusal("while_loop", {forever, passing(1, {0})}, {any_list({x}), any_list({})}),
               "MODEL_OPERATOR_FAILED", "did not end after 1000000 rounds");
  const torch::Tensor longest = x.expand({int64_t{1} << 40});
  EXPECT_ERROR(refusal("map_impl", {passing(1, {})}, {any_list({longest}), any_list({})}), "MODEL_OPERATOR_FAILED",
               "did not end after 1000000 rounds");
}

}  // namespace
}  // namespace sinew::model
