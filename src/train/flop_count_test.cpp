#include "train/flop_count.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace sinew::train {
namespace {

double of_forward_and_backward(const std::function<torch::Tensor()>& forward) {
  return flops_of([&] { forward().sum().backward(); });
}

TEST(FlopCount, ALinearLayerMultipliesThreeTimes) {
  const torch::Tensor input = torch::randn({5, 7}, torch::requires_grad()),
                      weight = torch::randn({3, 7}, torch::requires_grad()),
                      bias = torch::randn({3}, torch::requires_grad());
  const double once = 2.0 * 5 * 7 * 3;
  EXPECT_EQ(of_forward_and_backward([&] { return torch::linear(input, weight, bias); }), 3 * once);
  EXPECT_EQ(of_forward_and_backward([&] { return torch::linear(input.detach(), weight, bias); }), 2 * once)
      << "no gradient of the input";
}

TEST(FlopCount, AConvolutionMultipliesThreeTimes) {
  const torch::Tensor input = torch::randn({2, 3, 10, 8}, torch::requires_grad()),
                      weight = torch::randn({4, 3, 3, 3}, torch::requires_grad());
  const double once = 2.0 * (2 * 4 * 5 * 4) * (3 * 3 * 3);  // stride 2 and padding 1: 5 x 4 positions
  EXPECT_EQ(of_forward_and_backward([&] { return torch::conv2d(input, weight, {}, 2, 1); }), 3 * once);
}

TEST(FlopCount, BatchedProductsCountEachMatrix) {
  const torch::Tensor left = torch::randn({6, 2, 3}), right = torch::randn({6, 3, 4});
  EXPECT_EQ(flops_of([&] { torch::bmm(left, right); }), 6 * 2.0 * 2 * 3 * 4);
}

TEST(FlopCount, CountsOnlyInsideTheCallAndAlsoAfterAnError) {
  EXPECT_THROW(flops_of([] { throw std::runtime_error("x"); }), std::runtime_error);
  torch::mm(torch::ones({2, 2}), torch::ones({2, 2}));
  EXPECT_EQ(flops_of([] { torch::ones({2, 2}).add(1); }), 0);
}

}  // namespace
}  // namespace sinew::train
