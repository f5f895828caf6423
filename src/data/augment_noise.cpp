// Adds Gaussian noise, fast enough for the input pipeline. Logarithm, sine and cosine are written so that the compiler
// can vectorise them. They call no library, so the bits are the same with every C library.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "data/augment.h"

namespace sinew::data {
namespace {

constexpr size_t kPairs = 512;  // pairs of normals in one block; changing it changes the values of fill_normal

// Returns sqrt(-2 ln u) for u in (0, 1). With u = 2^e * m and s = (m - 1) / (m + 1), ln m = 2 atanh(s). Because m lies
// in [sqrt(1/2), sqrt(2)), six terms of the series have an error below 1e-8.
inline float radius_of(float u) {
  constexpr uint32_t kSqrtHalf = 0x3F3504F3;
  const uint32_t bits = std::bit_cast<uint32_t>(u) - kSqrtHalf;
  const auto exponent = static_cast<float>(static_cast<int32_t>(bits) >> 23);
  const float m = std::bit_cast<float>((bits & 0x007FFFFF) + kSqrtHalf);
  const float s = (m - 1.0f) / (m + 1.0f);
  const float q = s * s;
  float series = 1.0f / 11.0f;
  series = series * q + 1.0f / 9.0f;
  series = series * q + 1.0f / 7.0f;
  series = series * q + 1.0f / 5.0f;
  series = series * q + 1.0f / 3.0f;
  series = series * q + 1.0f;
  const float log = exponent * 0.693147180559945f + 2.0f * s * series;
  return std::sqrt(std::max(0.0f, -2.0f * log));
}

// Sine and cosine of an angle in [-pi/4, pi/4], by Taylor series with an error below 4e-8.
inline float small_sine(float a) {
  const float q = a * a;
  return a * (1.0f + q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040))));
}
inline float small_cosine(float a) {
  const float q = a * a;
  return 1.0f + q * (-0.5f + q * (1.0f / 24 + q * (-1.0f / 720 + q * (1.0f / 40320))));
}

// `words` holds random bits for kPairs radii, then for kPairs angles. `out` gets the first normals of all pairs, then
// the second ones.
void box_muller(const uint32_t* __restrict words, float* __restrict out) {
  for (size_t i = 0; i < kPairs; ++i) {
    const float u = (static_cast<float>(static_cast<int32_t>(words[i] >> 8)) + 0.5f) * 0x1.0p-24f;
    const float radius = radius_of(u);
    const uint32_t turn = words[kPairs + i];
    // The top two bits choose a quarter turn; the next 24 bits choose an angle in [-pi/4, pi/4).
    const auto within = static_cast<float>(static_cast<int32_t>((turn >> 6) & 0x00FFFFFF) - 0x00800000);
    const float angle = within * (0x1.0p-24f * 1.57079632679f);
    const float sine = small_sine(angle) * radius, cosine = small_cosine(angle) * radius;
    const bool odd = (turn >> 30) & 1;
    const float sign = static_cast<float>(1 - static_cast<int32_t>((turn >> 30) & 2));
    out[i] = sign * (odd ? sine : cosine);
    out[kPairs + i] = sign * (odd ? -cosine : sine);
  }
}

// Calls use(first index, count, values) with each block of normals.
template <typename Use>
void for_each_block(RandomKey key, size_t count, Use use) {
  uint32_t words[2 * kPairs];
  float values[2 * kPairs];
  for (size_t first = 0, block = 0; first < count; first += 2 * kPairs, ++block) {
    fill_random_bits(derive(key, static_cast<uint64_t>(block)), words);
    box_muller(words, values);
    use(first, std::min(2 * kPairs, count - first), values);
  }
}

}  // namespace

void fill_normal(RandomKey key, std::span<float> out) {
  for_each_block(key, out.size(), [&](size_t first, size_t count, const float* values) {
    std::copy(values, values + count, out.data() + first);
  });
}

void add_noise(RandomKey key, double deviation, std::span<float> pixels) {
  const auto amount = static_cast<float>(deviation);
  for_each_block(key, pixels.size(), [&](size_t first, size_t count, const float* values) {
    float* to = pixels.data() + first;
    for (size_t i = 0; i < count; ++i) {
      const float noisy = to[i] + amount * values[i];
      to[i] = noisy < 0.0f ? 0.0f : (noisy > 1.0f ? 1.0f : noisy);
    }
  });
}

}  // namespace sinew::data
