#include "base/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sinew {
namespace {

TEST(Audit, TheFractionZeroChoosesNothingAndOneEverything) {
  for (int64_t step = 0; step < 100; ++step) {
    EXPECT_TRUE(audit_of(7, Step(step), 9, 0).shards.empty());
    EXPECT_EQ(audit_of(7, Step(step), 9, 1).shards, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  }
  EXPECT_TRUE(audit_of(7, Step(0), 9, 1).all);
  EXPECT_FALSE(audit_of(7, Step(0), 9, 0.999).all);
}

TEST(Audit, ChoosesAboutTheGivenFraction) {
  constexpr int64_t kSteps = 5000, kShards = 8;
  for (const double fraction : {0.001, 0.1, 0.5}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      int64_t chosen = 0;
      for (int64_t step = 0; step < kSteps; ++step)
        chosen += static_cast<int64_t>(audit_of(seed, Step(step), kShards, fraction).shards.size());
      const double expected = fraction * kSteps * kShards;
      EXPECT_NEAR(static_cast<double>(chosen), expected, 6 * std::sqrt(expected)) << fraction << " " << seed;
    }
  }
}

TEST(Audit, IsAFunctionOfSeedStepAndShard) {
  bool seeds_differ = false, steps_differ = false;
  for (int64_t step = 0; step < 200; ++step) {
    const Audit audit = audit_of(3, Step(step), 16, 0.3);
    EXPECT_EQ(audit.step, Step(step));
    EXPECT_EQ(audit_of(3, Step(step), 16, 0.3).shards, audit.shards);
    EXPECT_TRUE(std::ranges::is_sorted(audit.shards));
    for (int64_t shard = 0; shard < 16; ++shard)
      EXPECT_EQ(audit.contains(ShardIndex(shard)), std::ranges::count(audit.shards, shard) == 1);
    // A shard's choice does not depend on how many shards the step has.
    const Audit longer = audit_of(3, Step(step), 40, 0.3);
    EXPECT_TRUE(std::ranges::includes(longer.shards, audit.shards));
    seeds_differ = seeds_differ || audit_of(4, Step(step), 16, 0.3).shards != audit.shards;
    steps_differ = steps_differ || audit_of(3, Step(step + 1), 16, 0.3).shards != audit.shards;
  }
  EXPECT_TRUE(seeds_differ);
  EXPECT_TRUE(steps_differ);
}

}  // namespace
}  // namespace sinew
