#include "base/random.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace sinew {
namespace {

// These outputs were published with the algorithm (Random123, kat_vectors: philox 4x32, 10 rounds).
TEST(Philox, GivesThePublishedOutputs) {
  EXPECT_EQ(philox({0}, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffffffffffff}, 0xffffffffffffffff, 0xffffffffffffffff),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x299f31d0a4093822}, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, VectorisedFillEqualsOneByOne) {
  for (const size_t size : {0, 1, 3, 4, 63, 64, 65, 128, 1000}) {
    std::vector<uint32_t> filled(size);
    fill_random_bits({42}, filled);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(filled[i], philox({42}, i / 4)[i % 4]) << size << ' ' << i;
  }
}

TEST(RandomKey, DependsOnEveryWordAndOnOrder) {
  std::set<uint64_t> keys;
  for (uint64_t a = 0; a < 30; ++a) {
    for (uint64_t b = 0; b < 30; ++b) keys.insert(random_key({a, b}).value);
    keys.insert(random_key({a}).value);
    keys.insert(derive({a}, "dropout").value);
    keys.insert(derive({a}, "init").value);
  }
  EXPECT_EQ(keys.size(), 30U * 30U + 3U * 30U);
}

TEST(RandomStream, MomentsAreRight) {
  RandomStream stream(random_key({7}));
  double sum = 0, squares = 0, uniform_sum = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.normal();
    sum += value;
    squares += value * value;
    uniform_sum += stream.uniform();
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(uniform_sum / kDraws, 0.5, 0.005);
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream stream(random_key({9}));
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[stream.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace sinew
