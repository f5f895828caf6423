#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <ATen/ops/native_batch_norm_cpu_dispatch.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "model/model.h"

namespace sinew::model {
namespace {

class VisionKernels : public testing::Test {
 protected:
  VisionKernels() { install_keyed_random(); }
  // Few different values, so that many are equal, and some that compare in no order.
  torch::Tensor images(std::vector<int64_t> shape, bool special = true) {
    torch::Tensor made = torch::empty(shape);
    RandomStream random(random_key({7, number_++}));
    for (int64_t i = 0; i < made.numel(); ++i) {
      const auto draw = static_cast<double>(random.below(9)) - 4;
      made.mutable_data_ptr<float>()[i] = static_cast<float>(draw);
      if (special && random.below(20) == 0) {
        constexpr float kSpecial[] = {NAN, INFINITY, -INFINITY, -0.0F};
        made.mutable_data_ptr<float>()[i] = kSpecial[random.below(4)];
      }
    }
    return made;
  }

 private:
  uint64_t number_ = 0;
};

// -0 differs from 0, but one NaN does not differ from another.
bool same_bits(const torch::Tensor& one, const torch::Tensor& other) {
  if (one.sizes() != other.sizes() || one.strides() != other.strides() || one.scalar_type() != other.scalar_type())
    return false;
  const torch::Tensor a = one.nan_to_num(0, INFINITY, -INFINITY), b = other.nan_to_num(0, INFINITY, -INFINITY);
  return torch::equal(one.isnan(), other.isnan()) &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

TEST_F(VisionKernels, PoolingHasTheBitsOfLibtorch) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {3, 5, 28, 28}, {2, 3, 7, 7}, {1, 1, 2, 2}, {2, 4, 3, 2}, {2, 2, 2, 35}, {1, 3, 64, 66}}) {
    for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
      const torch::Tensor input = images(shape).to(type);
      const auto [values, indices] = at::max_pool2d_with_indices(input, {2, 2}, {2, 2});
      const auto [wanted, wanted_indices] = at::cpu::max_pool2d_with_indices(input, {2, 2}, {2, 2});
      EXPECT_TRUE(same_bits(values, wanted)) << input.sizes() << type;
      EXPECT_TRUE(same_bits(indices, wanted_indices)) << input.sizes() << type;
    }
  }
}

TEST_F(VisionKernels, OtherWindowsAndLayoutsGoToLibtorch) {
  const torch::Tensor input = images({2, 4, 9, 9}), last = input.contiguous(torch::MemoryFormat::ChannelsLast);
  const auto same = [](const torch::Tensor& image, std::vector<int64_t> kernel, std::vector<int64_t> stride,
                       std::vector<int64_t> padding, bool ceil_mode = false) {
    const auto made = at::max_pool2d_with_indices(image, kernel, stride, padding, {1, 1}, ceil_mode);
    const auto wanted = at::cpu::max_pool2d_with_indices(image, kernel, stride, padding, {1, 1}, ceil_mode);
    return same_bits(std::get<0>(made), std::get<0>(wanted)) && same_bits(std::get<1>(made), std::get<1>(wanted));
  };
  EXPECT_TRUE(same(last, {2, 2}, {2, 2}, {0, 0}));
  EXPECT_TRUE(same(input, {3, 3}, {2, 2}, {1, 1}));
  EXPECT_TRUE(same(input, {2, 2}, {2, 2}, {0, 0}, true));
  EXPECT_TRUE(same(input, {2, 2}, {1, 1}, {0, 0}));
  EXPECT_TRUE(same(input, {2}, {}, {0}));
  EXPECT_TRUE(same(input.transpose(2, 3), {2, 2}, {2, 2}, {0, 0}));
  EXPECT_TRUE(same(input.slice(1, 0, 1), {2, 2}, {2, 2}, {0, 0}));
  EXPECT_TRUE(same(input[0], {2, 2}, {2, 2}, {0, 0}));
  EXPECT_TRUE(same(input.to(torch::kFloat64), {2, 2}, {2, 2}, {0, 0}));
}

TEST_F(VisionKernels, PoolingHasAGradient) {
  torch::Tensor input = images({2, 3, 7, 6}, false).requires_grad_(true);
  (torch::max_pool2d(input, 2) * 3).sum().backward();
  EXPECT_EQ(input.grad().sum().item<float>(), 3 * 2 * 3 * 3 * 3);
  EXPECT_EQ(input.grad().slice(2, 6, 7).abs().sum().item<float>(), 0) << "the odd row is in no window";
}

struct Normed {
  torch::Tensor output, mean, inverse, kept_mean, kept_variance;
};

template <typename Function>
Normed normed(const Function& function, const torch::Tensor& input, const torch::Tensor& weight,
              const torch::Tensor& bias, bool training = true) {
  const int64_t channels = input.size(1);
  Normed made{.kept_mean = torch::full({channels}, 0.5), .kept_variance = torch::full({channels}, 2.0)};
  std::tie(made.output, made.mean, made.inverse) =
      function(input, weight, bias, made.kept_mean, made.kept_variance, training, 0.1, 1e-5);
  return made;
}

TEST_F(VisionKernels, NormalisationIsThatOfLibtorchUpToRounding) {
  const auto own = [](auto&&... arguments) { return at::native_batch_norm(arguments...); };
  const auto libtorch = [](auto&&... arguments) { return at::cpu::native_batch_norm(arguments...); };
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {4, 3, 9, 9}, {1, 5, 8, 4}, {2, 5, 1, 3}, {3, 2, 40}, {2, 2, 3, 4, 5}, {16, 4, 28, 28}}) {
    const torch::Tensor input = images(shape, false) * 0.7 + 3, weight = torch::linspace(0.5, 2, shape[1]),
                        bias = torch::linspace(-1, 1, shape[1]);
    for (const bool affine : {true, false}) {
      const torch::Tensor w = affine ? weight : torch::Tensor(), b = affine ? bias : torch::Tensor();
      const Normed made = normed(own, input, w, b), wanted = normed(libtorch, input, w, b);
      EXPECT_TRUE(torch::allclose(made.output, wanted.output, 1e-4, 1e-5)) << input.sizes();
      EXPECT_TRUE(torch::allclose(made.mean, wanted.mean, 1e-5, 1e-6));
      EXPECT_TRUE(torch::allclose(made.inverse, wanted.inverse, 1e-5, 1e-6));
      EXPECT_TRUE(torch::allclose(made.kept_mean, wanted.kept_mean, 1e-5, 1e-6));
      EXPECT_TRUE(torch::allclose(made.kept_variance, wanted.kept_variance, 1e-5, 1e-6));
      EXPECT_TRUE(same_bits(normed(own, input, w, b).output, made.output)) << "it repeats";
    }
    EXPECT_TRUE(
        same_bits(normed(own, input, weight, bias, false).output, normed(libtorch, input, weight, bias, false).output))
        << "evaluation is libtorch's";
  }
}

TEST_F(VisionKernels, NormalisationOfAConstantAndOfWhatIsNotFinite) {
  const auto own = [](auto&&... arguments) { return at::native_batch_norm(arguments...); };
  torch::Tensor input = torch::full({2, 2, 6, 6}, 1000.1F);
  const torch::Tensor none;
  EXPECT_LT(normed(own, input, none, none).output.abs().max().item<float>(), 0.1);
  input[0][1][2][2] = NAN;
  const torch::Tensor output = normed(own, input, none, none).output;
  EXPECT_TRUE(output.select(1, 1).isnan().all().item<bool>());
  EXPECT_TRUE(output.select(1, 0).isfinite().all().item<bool>());
}

TEST_F(VisionKernels, NormalisationHasAGradient) {
  const auto gradients = [&](torch::MemoryFormat format) {  // libtorch computes the other one
    const RandomScope random(random_key({3}));
    torch::Tensor input = torch::randn({3, 4, 6, 6}).contiguous(format).requires_grad_(true);
    torch::Tensor weight = torch::linspace(0.5, 2, 4).requires_grad_(true),
                  bias = torch::zeros({4}, torch::requires_grad());
    const torch::Tensor output = torch::batch_norm(input, weight, bias, {}, {}, true, 0.1, 1e-5, false);
    return torch::autograd::grad({(output * output * output).sum()}, {input, weight, bias});
  };
  const auto own = gradients(torch::MemoryFormat::Contiguous), wanted = gradients(torch::MemoryFormat::ChannelsLast);
  for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(torch::allclose(own[i], wanted[i], 1e-4, 1e-4)) << i;
}

}  // namespace
}  // namespace sinew::model
