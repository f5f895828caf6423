// Tests the statistics that compare two samples, or a column with the targets.
#include "train/sanity_statistics.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"

namespace sinew::train::sanity {
namespace {

std::vector<float> normals(size_t count, uint64_t seed, float mean = 0) {
  RandomStream random(random_key({seed}));
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(mean + static_cast<float>(random.normal()));
  return values;
}

TEST(SanityStatistics, DistanceIsZeroForEqualAndOneForDisjointValues) {
  EXPECT_EQ(distribution_distance({1, 2, 3}, {3, 2, 1}), 0);
  EXPECT_EQ(distribution_distance({1, 2, 3}, {4, 5}), 1);
  EXPECT_EQ(distribution_distance({1, 1, 2, 2}, {1, 2}), 0) << "equal values count together";
  EXPECT_DOUBLE_EQ(distribution_distance({0, 0, 0, 1}, {0, 1, 1, 1}), 0.5);
  EXPECT_EQ(distribution_distance({}, {1}), 0);
}

TEST(SanityStatistics, ChanceHardlyEverExceedsItsDistance) {
  int above = 0;
  for (uint64_t seed = 0; seed < 200; ++seed)
    above += distribution_distance(normals(80, seed), normals(60, 1000 + seed)) > distance_by_chance(80, 60, 0.01);
  EXPECT_LE(above, 8);
  EXPECT_GT(distribution_distance(normals(80, 1), normals(60, 2, 2)), distance_by_chance(80, 60, 0.01));
}

TEST(SanityStatistics, SharesOfClassesAreCompared) {
  const std::vector<int64_t> even = {50, 50}, double_even = {100, 100}, first = {80, 0}, second = {0, 30},
                             none = {0, 0};
  EXPECT_EQ(share_distance(even, double_even), 0);
  EXPECT_EQ(share_distance(first, second), 1);
  EXPECT_EQ(share_distance(even, first), 0.5);
  EXPECT_EQ(share_distance(even, none), 0);
  EXPECT_LT(shares_by_chance(even, double_even), share_distance(even, first));
}

TEST(SanityStatistics, SharesOfOneDistributionStayBelowChance) {
  int above = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(random_key({seed, 3}));
    std::vector<int64_t> a(10, 0), b(10, 0);
    for (int i = 0; i < 60; ++i) ++a[random.below(10)], ++b[random.below(10)];
    above += share_distance(a, b) > shares_by_chance(a, b);
  }
  EXPECT_LE(above, 4);
}

TEST(SanityStatistics, ShareAboveComparesAllPairs) {
  EXPECT_EQ(share_above({1, 2}, {3, 4}), 1);
  EXPECT_EQ(share_above({3, 4}, {1, 2}), 0);
  EXPECT_EQ(share_above({1, 2}, {1, 2}), 0.5);
  EXPECT_EQ(share_above({}, {1}), 0.5);
}

TEST(SanityStatistics, ACounterIsKnownByItsEvenSteps) {
  std::vector<float> counter, scaled, gaps;
  for (int i = 0; i < 300; ++i) {
    counter.push_back(static_cast<float>(i));
    scaled.push_back((3.0F * static_cast<float>(i) - 450.0F) / 260.0F);
    if (i % 7 != 0 && i % 5 != 0) gaps.push_back(static_cast<float>(i));
  }
  EXPECT_TRUE(counts_up(counter));
  EXPECT_TRUE(counts_up(scaled));
  EXPECT_TRUE(counts_up(gaps)) << "some rows are in another split";
  EXPECT_FALSE(counts_up(normals(300, 1)));
  std::vector<float> few_values;
  for (int i = 0; i < 300; ++i) few_values.push_back(static_cast<float>(i % 100));
  EXPECT_FALSE(counts_up(few_values));
  EXPECT_FALSE(counts_up({1, 2, 3})) << "too few to tell";
}

TEST(SanityStatistics, ChangeInOrderIsSmallIfTheOrderSortsTheTargets) {
  std::vector<float> places(400);
  std::iota(places.begin(), places.end(), 0.0F);
  std::vector<double> sorted, walk, random_classes;
  RandomStream random(random_key({4}));
  for (size_t i = 0; i < places.size(); ++i) {
    sorted.push_back(i < 200 ? 0 : 1);
    walk.push_back((walk.empty() ? 0 : walk.back()) + random.normal());
    random_classes.push_back(static_cast<double>(random.below(3)));
  }
  EXPECT_LT(change_in_order(places, sorted, true), 0.02);
  EXPECT_LT(change_in_order(places, walk, false), 0.2);
  EXPECT_NEAR(change_in_order(places, random_classes, true), 1, 0.15);
  const std::vector<double> constant(400, 3.0);
  EXPECT_EQ(change_in_order(places, constant, false), 1) << "a constant target does not follow the order";
}

}  // namespace
}  // namespace sinew::train::sanity
