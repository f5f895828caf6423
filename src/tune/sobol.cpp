#include "tune/sobol.h"

#include <array>
#include <bit>

namespace sinew::tune {
namespace {

constexpr int kBits = 32;

// One row of the file of Joe and Kuo: a primitive polynomial (degree, inner coefficients) and the first odd numbers.
struct Row {
  int degree;
  uint32_t coefficients;
  std::array<uint32_t, 7> first;
};
constexpr Row kRows[kSobolDimensions - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
};

using Directions = std::array<uint32_t, kBits>;

constexpr std::array<Directions, kSobolDimensions> make_directions() {
  std::array<Directions, kSobolDimensions> all{};
  for (int bit = 0; bit < kBits; ++bit) all[0][bit] = 1u << (kBits - 1 - bit);
  for (size_t dimension = 1; dimension < kSobolDimensions; ++dimension) {
    const Row& row = kRows[dimension - 1];
    Directions& v = all[dimension];
    for (int bit = 0; bit < kBits; ++bit) {
      if (bit < row.degree) {
        v[bit] = row.first[bit] << (kBits - 1 - bit);
        continue;
      }
      v[bit] = v[bit - row.degree] ^ (v[bit - row.degree] >> row.degree);
      for (int k = 1; k < row.degree; ++k) {
        if ((row.coefficients >> (row.degree - 1 - k)) & 1) v[bit] ^= v[bit - k];
      }
    }
  }
  return all;
}
constexpr auto kDirections = make_directions();

// Owen's nested permutation in base 2: whether a bit is flipped depends only on the bits above it.
uint32_t scrambled(RandomKey key, uint32_t x) {
  uint32_t flips = 0;
  for (int bit = 0; bit < kBits; ++bit) {
    const uint32_t above = bit == 0 ? 0 : x >> (kBits - bit);
    flips |= (philox(key, above, static_cast<uint64_t>(bit))[0] & 1) << (kBits - 1 - bit);
  }
  return x ^ flips;
}

}  // namespace

void sobol_point(RandomKey key, uint32_t index, std::span<double> out) {
  uint32_t place = index;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t dimension = i % kSobolDimensions;
    // Each further block of dimensions visits the sequence in a scrambled order. The first 2^k points of that order are
    // still 2^k consecutive points of the sequence.
    if (i > 0 && dimension == 0) {
      place = scrambled(derive(derive(key, "order"), i), index);
    }
    uint32_t x = 0;
    for (uint32_t rest = place; rest != 0; rest &= rest - 1) x ^= kDirections[dimension][std::countr_zero(rest)];
    out[i] = static_cast<double>(scrambled(derive(key, i), x)) * 0x1p-32;
  }
}

}  // namespace sinew::tune
