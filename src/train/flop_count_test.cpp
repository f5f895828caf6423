#include "train/flop_count.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "model/model.h"

namespace sinew::train {
namespace {

class FlopCount : public testing::Test {
 protected:
  const model::RandomScope random_{random_key({1})};
};

double of_forward_and_backward(const std::function<torch::Tensor()>& forward) {
  return flops_of([&] { forward().sum().backward(); });
}

TEST_F(FlopCount, ALinearLayerMultipliesThreeTimes) {
  const torch::Tensor input = torch::randn({5, 7}, torch::requires_grad()),
                      weight = torch::randn({3, 7}, torch::requires_grad()),
                      bias = torch::randn({3}, torch::requires_grad());
  const double once = 2.0 * 5 * 7 * 3;
  EXPECT_EQ(of_forward_and_backward([&] { return torch::linear(input, weight, bias); }), 3 * once);
  EXPECT_EQ(of_forward_and_backward([&] { return torch::linear(input.detach(), weight, bias); }), 2 * once)
      << "no gradient of the input";
}

TEST_F(FlopCount, AConvolutionMultipliesThreeTimes) {
  const torch::Tensor input = torch::randn({2, 3, 10, 8}, torch::requires_grad()),
                      weight = torch::randn({4, 3, 3, 3}, torch::requires_grad());
  const double once = 2.0 * (2 * 4 * 5 * 4) * (3 * 3 * 3);  // stride 2 and padding 1: 5 x 4 positions
  EXPECT_EQ(of_forward_and_backward([&] { return torch::conv2d(input, weight, {}, 2, 1); }), 3 * once);
}

TEST_F(FlopCount, BatchedProductsCountEachMatrix) {
  const torch::Tensor left = torch::randn({6, 2, 3}), right = torch::randn({6, 3, 4});
  EXPECT_EQ(flops_of([&] { torch::bmm(left, right); }), 6 * 2.0 * 2 * 3 * 4);
}

TEST_F(FlopCount, ATransposedConvolutionMultipliesAsItsInverse) {
  const torch::Tensor small = torch::randn({2, 6, 5, 4}, torch::requires_grad()),
                      weight = torch::randn({6, 3, 3, 3}, torch::requires_grad());
  const double once = 2.0 * (2 * 6 * 5 * 4) * (3 * 3 * 3);
  EXPECT_EQ(of_forward_and_backward([&] { return torch::conv_transpose2d(small, weight, {}, 2); }), 3 * once);
}

TEST_F(FlopCount, AGroupedConvolutionSeesTheChannelsOfItsGroup) {
  const torch::Tensor input = torch::randn({2, 4, 9}, torch::requires_grad()),
                      weight = torch::randn({8, 2, 3}, torch::requires_grad());
  const double once = 2.0 * (2 * 8 * 5) * (2 * 3);  // dilation 2: 9 - 2 * 2 = 5 positions
  EXPECT_EQ(of_forward_and_backward(
                [&] { return torch::conv1d(input, weight, {}, at::IntArrayRef(1), at::IntArrayRef(0), 2, 2); }),
            3 * once);
}

TEST_F(FlopCount, AnLstmMultipliesThreeTimes) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(5, 7).batch_first(true));
  const torch::Tensor input = torch::randn({3, 11, 5});
  const double once = 2.0 * 3 * 11 * (4 * 7 * (5 + 7));
  const double found = of_forward_and_backward([&] { return std::get<0>(lstm(input)); });
  EXPECT_GE(found, 2.5 * once) << "the gradient of the input may be left out";
  EXPECT_LE(found, 3.2 * once) << found / once;
}

TEST_F(FlopCount, AttentionCountsScoresAndValues) {
  const torch::Tensor query = torch::randn({2, 4, 32, 16}, torch::requires_grad()),
                      key = torch::randn({2, 4, 48, 16}, torch::requires_grad());
  const double once = 4.0 * 2 * 4 * 32 * 48 * 16;
  const double found = of_forward_and_backward([&] { return at::scaled_dot_product_attention(query, key, key); });
  EXPECT_GE(found, 2.9 * once) << found / once;
  EXPECT_LE(found, 3.6 * once) << found / once;
}

TEST_F(FlopCount, CountsOnlyInsideTheCallAndAlsoAfterAnError) {
  EXPECT_THROW(flops_of([] { throw std::runtime_error("x"); }), std::runtime_error);
  torch::mm(torch::ones({2, 2}), torch::ones({2, 2}));
  EXPECT_EQ(flops_of([] { torch::ones({2, 2}).add(1); }), 0);
}

}  // namespace
}  // namespace sinew::train
