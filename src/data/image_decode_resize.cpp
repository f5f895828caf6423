// Resizes with a separable triangle filter. It computes each output row in two passes: it first adds up the weighted
// input rows, then filters along the sum.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "data/image_decode.h"

namespace sinew::data {
namespace {

// The inputs that each output reads, and their weights. The weights of one output sum to `total`.
struct Taps {
  struct Window {
    int64_t first, count;
  };
  std::vector<Window> windows;  // one for each output
  std::vector<float> weights;   // `max_count` weights for each output
  int64_t max_count = 0;
};

Taps triangle_taps(int64_t from, int64_t to, double total) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  Taps taps;
  taps.max_count = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  taps.windows.resize(static_cast<size_t>(to));
  taps.weights.resize(static_cast<size_t>(to * taps.max_count));
  std::vector<double> weights(static_cast<size_t>(taps.max_count));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t last = std::min(from, static_cast<int64_t>(center + support + 0.5));
    double sum = 0;
    for (int64_t j = first; j < last; ++j) {
      const double distance = std::abs((static_cast<double>(j) + 0.5 - center) / support);
      sum += weights[static_cast<size_t>(j - first)] = std::max(0.0, 1.0 - distance);
    }
    taps.windows[static_cast<size_t>(i)] = {first, last - first};
    for (int64_t j = 0; j < last - first; ++j) {
      taps.weights[static_cast<size_t>(i * taps.max_count + j)] =
          static_cast<float>(weights[static_cast<size_t>(j)] / sum * total);
    }
  }
  return taps;
}

// These loops have no sum across elements, so wider vectors give the same bits. The macro is empty with
// ThreadSanitizer: the loader would choose a clone before ThreadSanitizer is initialised, and crash.
#if defined(__SANITIZE_THREAD__) || defined(__clang__)
#define SINEW_PIXEL_CLONES
#else
#define SINEW_PIXEL_CLONES __attribute__((target_clones("avx2", "default"), optimize("O3")))
#endif

SINEW_PIXEL_CLONES void divide_bytes(const uint8_t* __restrict from, float* __restrict to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<float>(static_cast<int32_t>(from[i])) / 255.0f;
}

SINEW_PIXEL_CLONES void standardize_floats(float* values, size_t count, float mean, float std) {
  for (size_t i = 0; i < count; ++i) values[i] = (values[i] - mean) / std;
}

SINEW_PIXEL_CLONES void add_row(const uint8_t* __restrict from, float weight, float* __restrict sums, size_t count) {
  for (size_t i = 0; i < count; ++i) sums[i] += weight * static_cast<float>(static_cast<int32_t>(from[i]));
}

// `sums` is one row [width, channels]. The loop handles the channels of a pixel as a vector of four floats and ignores
// the fourth.
template <int kChannels>
void resize_row(const float* sums, const Taps& taps, ImageSize size, int64_t y, float* out) {
  typedef float Four __attribute__((vector_size(16)));
  const int64_t plane = size.height * size.width;
  float* to = out + y * size.width;
  for (int64_t x = 0; x < size.width; ++x) {
    const Taps::Window window = taps.windows[static_cast<size_t>(x)];
    const float* weights = taps.weights.data() + x * taps.max_count;
    const float* from = sums + window.first * kChannels;
    Four total = {0, 0, 0, 0};
    if constexpr (kChannels == 1) {
      for (int64_t j = 0; j < window.count; ++j) total[0] += weights[j] * from[j];
    } else {
      for (int64_t j = 0; j < window.count; ++j) {
        Four pixel;
        std::memcpy(&pixel, from + j * kChannels, sizeof pixel);
        total += pixel * weights[j];
      }
    }
    for (int c = 0; c < kChannels; ++c) to[c * plane + x] = total[c];
  }
}

void to_floats(const Pixels& pixels, std::span<float> out) {
  const int64_t plane = pixels.height * pixels.width;
  for (int64_t c = 0; c < pixels.channels; ++c) {
    const uint8_t* from = pixels.bytes.data() + c;
    float* to = out.data() + c * plane;
    for (int64_t i = 0; i < plane; ++i) to[i] = static_cast<float>(from[i * pixels.channels]) / 255.0f;
  }
}

}  // namespace

void bytes_to_floats(std::span<const uint8_t> from, std::span<float> out) {
  SINEW_CHECK(from.size() == out.size(), from.size(), out.size());
  divide_bytes(from.data(), out.data(), from.size());
}

void standardize(std::span<float> values, float mean, float std) {
  standardize_floats(values.data(), values.size(), mean, std);
}

void resize_to_floats(const Pixels& pixels, ImageSize size, std::span<float> out) {
  SINEW_CHECK(pixels.channels == 1 || pixels.channels == 3, pixels.channels);
  SINEW_CHECK(static_cast<int64_t>(out.size()) == pixels.channels * size.height * size.width, out.size());
  if (pixels.height == size.height && pixels.width == size.width) return to_floats(pixels, out);
  const Taps rows = triangle_taps(pixels.height, size.height, 1.0 / 255.0);
  const Taps columns = triangle_taps(pixels.width, size.width, 1.0);
  const auto row_count = static_cast<size_t>(pixels.width * pixels.channels);
  std::vector<float> sums(row_count + 4);  // resize_row reads the last pixel as four floats
  for (int64_t y = 0; y < size.height; ++y) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    const Taps::Window window = rows.windows[static_cast<size_t>(y)];
    for (int64_t j = 0; j < window.count; ++j) {
      add_row(pixels.bytes.data() + static_cast<size_t>(window.first + j) * row_count,
              rows.weights[static_cast<size_t>(y * rows.max_count + j)], sums.data(), row_count);
    }
    if (pixels.channels == 1) {
      resize_row<1>(sums.data(), columns, size, y, out.data());
    } else {
      resize_row<3>(sums.data(), columns, size, y, out.data());
    }
  }
}

}  // namespace sinew::data
