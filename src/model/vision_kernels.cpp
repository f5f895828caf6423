#include "model/vision_kernels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <torch/types.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace sinew::model {
namespace {

// The compiler makes one clone for each kind of processor; all have the same bits. A comparison may signal a NaN, which
// nobody looks at; without this option the compiler would not vectorise comparisons. With ThreadSanitizer there are no
// clones: the loader would choose one before ThreadSanitizer is initialised.
#if defined(__SANITIZE_THREAD__) || defined(__clang__)
#define SINEW_VISION_CLONES
#else
#define SINEW_VISION_CLONES \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "no-trapping-math")))
#endif
// A function with other options cannot be inlined unless it must be.
#define SINEW_INLINE __attribute__((always_inline)) inline

// ---- pooling of 2x2 ------------------------------------------------------------------------------------------------
//
// All loops are over whole planes, because the rows of small images are too short for vectors. They choose first within
// the pairs of a row, then between two rows. As in libtorch, the first of equal values wins, and the last NaN.

SINEW_INLINE float number_of(float value) {
  return value;
}
SINEW_INLINE float number_of(uint16_t bfloat16) {
  const uint32_t bits = static_cast<uint32_t>(bfloat16) << 16;
  float value = 0;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
SINEW_INLINE void put(float value, float& out) {
  out = value;
}
SINEW_INLINE void put(float value, uint16_t& out) {  // the value comes from a bfloat16, so nothing is rounded
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  out = static_cast<uint16_t>(bits >> 16);
}

// Writes the larger one of each pair of neighbours, and which one it is.
template <typename T>
SINEW_INLINE void choose_in_pairs(const T* __restrict in, float* __restrict out, int32_t* __restrict which, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float left = number_of(in[2 * i]), right = number_of(in[2 * i + 1]);
    const bool second = (right > left) | (right != right);
    out[i] = second ? right : left;
    which[i] = second ? 1 : 0;
  }
}
SINEW_VISION_CLONES void pairs_of(const float* in, float* out, int32_t* which, int64_t n) {
  choose_in_pairs(in, out, which, n);
}
SINEW_VISION_CLONES void pairs_of(const uint16_t* in, float* out, int32_t* which, int64_t n) {
  choose_in_pairs(in, out, which, n);
}

// Writes the larger one of each value and the one `width` after it, and where it is: 0 to 3 in its window.
SINEW_VISION_CLONES void rows_of(const float* __restrict in, const int32_t* __restrict which, float* __restrict out,
                                 int32_t* __restrict place, int64_t n, int64_t width) {
  const float* __restrict below = in + width;
  const int32_t* __restrict which_below = which + width;
  for (int64_t i = 0; i < n; ++i) {
    const bool second = (below[i] > in[i]) | (below[i] != below[i]);
    out[i] = second ? below[i] : in[i];
    place[i] = second ? which_below[i] + 2 : which[i];
  }
}

// `first` has the index of the first element of each window.
SINEW_VISION_CLONES void indices_of(const int32_t* __restrict place, const int32_t* __restrict first,
                                    int64_t* __restrict indices, int64_t n, int32_t row) {
  for (int64_t i = 0; i < n; ++i) indices[i] = first[i] + (place[i] >> 1) * row + (place[i] & 1);
}

SINEW_VISION_CLONES void copy_numbers(const float* __restrict in, float* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) put(in[i], out[i]);
}
SINEW_VISION_CLONES void copy_numbers(const float* __restrict in, uint16_t* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) put(in[i], out[i]);
}

// Pools planes of height x width numbers, one after another.
template <typename T>
class PlanePool {
 public:
  PlanePool(int64_t height, int64_t width)
      : width_(width), rows_(height / 2), columns_(width / 2), first_(static_cast<size_t>(rows_ * columns_)) {
    const auto pairs = static_cast<size_t>(2 * rows_ * columns_);
    even_.resize(width % 2 == 0 ? 0 : 2 * pairs);
    larger_.resize(pairs);
    which_.resize(pairs);
    largest_.resize(pairs);
    place_.resize(pairs);
    dense_place_.resize(first_.size());
    dense_.resize(first_.size());
    for (int64_t y = 0; y < rows_; ++y) {
      for (int64_t x = 0; x < columns_; ++x)
        first_[static_cast<size_t>(y * columns_ + x)] = static_cast<int32_t>(2 * y * width + 2 * x);
    }
  }

  void pool(const T* in, T* out, int64_t* indices) {
    const int64_t count = rows_ * columns_;
    pairs_of(without_odd_column(in), larger_.data(), which_.data(), 2 * count);
    rows_of(larger_.data(), which_.data(), largest_.data(), place_.data(), 2 * count - columns_, columns_);
    for (int64_t y = 0; y < rows_; ++y) {  // every second row is one between two windows
      std::copy_n(largest_.data() + 2 * y * columns_, columns_, dense_.data() + y * columns_);
      std::copy_n(place_.data() + 2 * y * columns_, columns_, dense_place_.data() + y * columns_);
    }
    copy_numbers(dense_.data(), out, count);
    indices_of(dense_place_.data(), first_.data(), indices, count, static_cast<int32_t>(width_));
  }

 private:
  const T* without_odd_column(const T* in) {
    if (width_ % 2 == 0) return in;
    for (int64_t y = 0; y < 2 * rows_; ++y) std::copy_n(in + y * width_, 2 * columns_, even_.data() + y * 2 * columns_);
    return even_.data();
  }

  int64_t width_, rows_, columns_;
  std::vector<int32_t> first_, which_, place_, dense_place_;
  std::vector<float> larger_, largest_, dense_;
  std::vector<T> even_;
};

template <typename T>
void pool_planes(const at::Tensor& input, at::Tensor& output, at::Tensor& indices) {
  const int64_t height = input.size(-2), width = input.size(-1), planes = input.numel() / (height * width);
  const auto* in = static_cast<const T*>(input.const_data_ptr());
  auto* out = static_cast<T*>(output.mutable_data_ptr());
  auto* index = indices.mutable_data_ptr<int64_t>();
  PlanePool<T> pool(height, width);
  const int64_t count = (height / 2) * (width / 2);
  for (int64_t p = 0; p < planes; ++p) pool.pool(in + p * height * width, out + p * count, index + p * count);
}

// Whether a list of one or two numbers means this one for both sides of an image.
bool is_both(at::IntArrayRef sizes, int64_t number) {
  return !sizes.empty() && std::ranges::all_of(sizes, [&](int64_t one) { return one == number; });
}

bool halves(const at::Tensor& input, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
            at::IntArrayRef dilation, bool ceil_mode) {
  const bool windows = is_both(kernel, 2) && (stride.empty() || is_both(stride, 2)) && is_both(padding, 0) &&
                       is_both(dilation, 1) && kernel.size() <= 2 && stride.size() <= 2 && padding.size() <= 2 &&
                       dilation.size() <= 2;
  if (!windows || input.dim() != 4 || input.numel() == 0) return false;
  const int64_t height = input.size(2), width = input.size(3);
  if (height < 2 || width < 2 || height * width > INT32_MAX) return false;
  if (ceil_mode && (height % 2 != 0 || width % 2 != 0)) return false;
  const bool type = input.scalar_type() == at::kFloat || input.scalar_type() == at::kBFloat16;
  return type && input.is_contiguous() && input.suggest_memory_format() == at::MemoryFormat::Contiguous;
}

std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& input, at::IntArrayRef kernel, at::IntArrayRef stride,
                                            at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  if (!halves(input, kernel, stride, padding, dilation, ceil_mode))
    return at::cpu::max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode);
  const std::vector<int64_t> shape = {input.size(0), input.size(1), input.size(2) / 2, input.size(3) / 2};
  at::Tensor output = at::empty(shape, input.options()), indices = at::empty(shape, input.options().dtype(at::kLong));
  if (input.scalar_type() == at::kFloat) {
    pool_planes<float>(input, output, indices);
  } else {
    pool_planes<uint16_t>(input, output, indices);
  }
  return {output, indices};
}

}  // namespace

void install_vision_kernels(torch::Library& library) {
  library.impl("max_pool2d_with_indices", TORCH_FN(max_pool));
}

}  // namespace sinew::model
