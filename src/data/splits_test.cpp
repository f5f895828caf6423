#include "data/splits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace sinew::data {
namespace {

using testing::ElementsAre;

void expect_each_once(const SplitIndices& splits, int64_t size) {
  std::vector<int64_t> all;
  for (const auto* split : {&splits.train, &splits.val, &splits.test}) {
    EXPECT_TRUE(std::is_sorted(split->begin(), split->end()));
    all.insert(all.end(), split->begin(), split->end());
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(static_cast<int64_t>(all.size()), size);
  for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
}

TEST(Splits, HoldEachSampleOnceInTheRightFractions) {
  RandomStream draws(random_key({10}));
  for (int trial = 0; trial < 300; ++trial) {
    const auto size = static_cast<int64_t>(draws.below(3000));
    const double val = draws.uniform(0, 0.5), test = draws.uniform(0, 0.49);
    const SplitIndices splits = split_samples({size, val, test, draws.bits64()});
    EXPECT_NEAR(static_cast<double>(splits.val.size()), val * static_cast<double>(size), 0.51);
    EXPECT_NEAR(static_cast<double>(splits.test.size()), test * static_cast<double>(size), 0.51);
    expect_each_once(splits, size);
  }
}

TEST(Splits, DependOnTheSeedOnly) {
  EXPECT_EQ(split_samples({1000, 0.1, 0.1, 3}).val, split_samples({1000, 0.1, 0.1, 3}).val);
  EXPECT_NE(split_samples({1000, 0.1, 0.1, 3}).val, split_samples({1000, 0.1, 0.1, 4}).val);
  EXPECT_EQ(split_samples({1000, 0, 0, 4}).train.size(), 1000U);
}

// As scikit-learn's train_test_split(stratify=y): no class is more than one sample away from its share.
TEST(Splits, EveryClassKeepsItsShare) {
  RandomStream draws(random_key({11}));
  for (int trial = 0; trial < 300; ++trial) {
    const auto size = static_cast<int64_t>(50 + draws.below(2000));
    const uint64_t classes = 2 + draws.below(8);
    std::vector<int64_t> of(static_cast<size_t>(size));
    for (int64_t& c : of) c = static_cast<int64_t>(std::min(draws.below(classes), draws.below(classes)));
    const double val = draws.uniform(0, 0.4), test = draws.uniform(0, 0.4);
    const SplitIndices splits =
        split_samples({.size = size, .val = val, .test = test, .seed = draws.bits64(), .classes = of});
    expect_each_once(splits, size);
    EXPECT_NEAR(static_cast<double>(splits.val.size()), val * static_cast<double>(size), 0.51);
    EXPECT_NEAR(static_cast<double>(splits.test.size()), test * static_cast<double>(size), 0.51);
    for (int64_t c = 0; c < static_cast<int64_t>(classes); ++c) {
      const auto count = [&](const std::vector<int64_t>& split) {
        return static_cast<double>(
            std::ranges::count_if(split, [&](int64_t i) { return of[static_cast<size_t>(i)] == c; }));
      };
      const auto all = static_cast<double>(std::ranges::count(of, c));
      if (all < 10) continue;
      EXPECT_NEAR(count(splits.test), test * all, 1.01) << c;
      EXPECT_NEAR(count(splits.val), val * all, 1.01) << c;
    }
  }
}

TEST(Splits, ARareClassStaysInTrain) {
  std::vector<int64_t> of(100, 0);
  of[17] = 1;
  of[40] = of[60] = 2;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const SplitIndices splits = split_samples({.size = 100, .val = 0.3, .test = 0.3, .seed = seed, .classes = of});
    std::set<int64_t> in_train;
    for (const int64_t i : splits.train) in_train.insert(of[static_cast<size_t>(i)]);
    EXPECT_EQ(in_train.size(), 3U);
    EXPECT_EQ(splits.val.size(), 30U);
    EXPECT_EQ(splits.test.size(), 30U);
  }
}

TEST(Splits, AGroupIsNeverInTwoSplits) {
  RandomStream draws(random_key({12}));
  for (int trial = 0; trial < 200; ++trial) {
    const auto size = static_cast<int64_t>(20 + draws.below(500));
    const uint64_t groups = 3 + draws.below(17);
    std::vector<int64_t> of(static_cast<size_t>(size));
    for (size_t i = 0; i < of.size(); ++i) of[i] = static_cast<int64_t>(i < groups ? i : draws.below(groups));
    const SplitIndices splits =
        split_samples({.size = size, .val = 0.2, .test = 0.2, .seed = draws.bits64(), .groups = of});
    expect_each_once(splits, size);
    std::vector<std::set<int64_t>> sets;
    for (const auto* split : {&splits.train, &splits.val, &splits.test}) {
      auto& set = sets.emplace_back();
      for (const int64_t i : *split) set.insert(of[static_cast<size_t>(i)]);
    }
    EXPECT_FALSE(sets[0].empty());
    EXPECT_FALSE(sets[2].empty());
    EXPECT_EQ(sets[0].size() + sets[1].size() + sets[2].size(), groups);
  }
}

TEST(Splits, TheLatestSamplesAreTheTest) {
  const std::vector<double> times = {5, 1, 9, 3, 7, 7, 2, 8, 0, 4};
  const SplitIndices splits = split_samples({.size = 10, .val = 0.3, .test = 0.2, .times = times});
  EXPECT_THAT(splits.test, ElementsAre(2, 7));
  EXPECT_THAT(splits.val, ElementsAre(0, 4, 5));
  EXPECT_THAT(splits.train, ElementsAre(1, 3, 6, 8, 9));
}

}  // namespace
}  // namespace sinew::data
