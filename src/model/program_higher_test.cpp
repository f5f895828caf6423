// Tests of higher-order operators, each with a body that the test builds.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "base/error.h"
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

}  // namespace
}  // namespace sinew::model
