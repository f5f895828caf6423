#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
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

}  // namespace
}  // namespace sinew::model
