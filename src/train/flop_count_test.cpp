#include "train/flop_count.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "model/model.h"

namespace sinew::train {
namespace {

class FlopCount : public testing::Test {
 protected:
  const model::RandomScope random_{random_key({1})};
};

double flops_of(const std::function<void()>& work) {
  return work_of(work).flops;
}

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

TEST_F(FlopCount, OperatorsAreCountedOnceAndNamedWithTheirSizes) {
  const torch::Tensor input = torch::randn({2, 3, 10, 8}), weight = torch::randn({4, 3, 3, 3}, torch::requires_grad());
  const auto work = [&] { torch::relu(torch::conv2d(input, weight, {}, 1, 1)).sum().backward(); };
  const std::vector<advise::OperatorUse> uses = operators_of(work);
  const auto find = [&](const std::string& name) {
    const auto found = std::ranges::find(uses, name, &advise::OperatorUse::name);
    return found == uses.end() ? advise::OperatorUse{} : *found;
  };
  const advise::OperatorUse forward = find("convolution 2x3x10x8 * 4x3x3x3");
  EXPECT_EQ(forward.calls, 1);
  EXPECT_GT(forward.seconds, 0);
  EXPECT_EQ(forward.flops, 2.0 * (2 * 4 * 10 * 8) * (3 * 3 * 3));
  EXPECT_EQ(find("relu 2x4x10x8").calls, 1);
  EXPECT_EQ(find("relu 2x4x10x8").flops, 0);
  double flops = 0;
  for (const advise::OperatorUse& use : uses) {
    flops += use.flops;
    EXPECT_GE(use.seconds, 0);
    EXPECT_EQ(use.name.find("mkldnn_convolution"), std::string::npos) << "a part of the convolution";
  }
  EXPECT_EQ(flops, flops_of(work));
  EXPECT_TRUE(std::ranges::is_sorted(uses, std::ranges::greater(), &advise::OperatorUse::seconds));
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

TEST_F(FlopCount, AnOperatorReadsItsInputsAndWritesItsOutput) {
  const torch::Tensor left = torch::randn({100, 10}), right = torch::randn({10, 50});
  const OperatorWork work = work_of([&] { left.mm(right); });
  EXPECT_EQ(work.bytes, 4 * (100 * 10 + 10 * 50 + 100 * 50));
  EXPECT_EQ(work.calls, 1);
}

TEST_F(FlopCount, AViewMovesNothingAndAWriteInPlaceDoes) {
  torch::Tensor tensor = torch::randn({100, 10});
  const OperatorWork views = work_of([&] { tensor.t().reshape({10, 10, 10}).select(0, 1); });
  EXPECT_EQ(views.bytes, 0);
  EXPECT_EQ(views.calls, 0);
  EXPECT_EQ(work_of([&] { tensor.relu_(); }).bytes, 2 * 4000);
}

TEST_F(FlopCount, AnOperatorThatCallsOthersIsNotCountedTwice) {
  const torch::Tensor input = torch::randn({20, 30}), weight = torch::randn({40, 30}), bias = torch::randn({40});
  const OperatorWork work = work_of([&] { torch::linear(input, weight, bias); });  // it calls addmm
  EXPECT_EQ(work.calls, 1);
  EXPECT_EQ(work.bytes, 4 * (20 * 30 + 40 * 30 + 40 + 20 * 40));
}

}  // namespace
}  // namespace sinew::train
