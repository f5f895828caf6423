#include "distribute/speed_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace sinew::distribute {
namespace {

// Begins collectives one second apart. In each, the worker computes `count` shards that take `seconds` each.
void run_collectives(SpeedMeter& meter, double& now, int collectives, int count, double seconds) {
  for (int i = 0; i < collectives; ++i, now += 1) {
    meter.begin_collective(now);
    for (int n = 0; n < count; ++n) meter.took(seconds);
  }
}

TEST(SpeedMeter, ReportsZeroBeforeTheFirstShard) {
  SpeedMeter meter;
  double now = 100;
  EXPECT_EQ(meter.shards_a_second(now), 0);
  run_collectives(meter, now, 30, 0, 0);
  EXPECT_EQ(meter.shards_a_second(now), 0);
  meter.took(0.5);
  EXPECT_DOUBLE_EQ(meter.shards_a_second(now), 2);
}

TEST(SpeedMeter, FollowsALastingChangeButNotOnePreemptedShard) {
  SpeedMeter meter;
  double now = 0;
  run_collectives(meter, now, 10, 100, 0.01);
  EXPECT_NEAR(meter.shards_a_second(now), 100, 1e-6);
  meter.took(0.1);
  EXPECT_GT(meter.shards_a_second(now), 90);
  run_collectives(meter, now, 10, 100, 0.02);
  EXPECT_NEAR(meter.shards_a_second(now), 50, 1);
}

// The speed is the number of shards divided by the sum of their times, even if the times vary.
TEST(SpeedMeter, AveragesVaryingTimes) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(random_key({7, seed}));
    SpeedMeter meter;
    double now = 0;
    for (int i = 0; i < 5000; ++i) {
      meter.begin_collective(now);
      meter.took(random.uniform(0.001, 0.009));
    }
    EXPECT_NEAR(meter.shards_a_second(now), 200, 20) << seed;
  }
}

TEST(SpeedMeter, AWorkerWithoutShardsReportsAGrowingSpeed) {
  SpeedMeter meter;
  double now = 0;
  run_collectives(meter, now, 5, 1, 0.5);
  EXPECT_DOUBLE_EQ(meter.shards_a_second(now), 2);
  run_collectives(meter, now, 1, 0, 0);  // this collective may still give the worker a shard
  const double since = now - 1;
  double before = 2;
  while (now < since + 4 * SpeedMeter::kDoublingSeconds) {
    run_collectives(meter, now, 1, 0, 0);
    const double told = meter.shards_a_second(now);
    EXPECT_GE(told, before);
    EXPECT_DOUBLE_EQ(told, 2 * std::exp2(std::floor((now - since) / SpeedMeter::kDoublingSeconds)));
    before = told;
  }
  EXPECT_GE(before, 16);
  meter.took(0.5);  // the worker is tried with one shard and is as slow as before
  EXPECT_DOUBLE_EQ(meter.shards_a_second(now), 2);
}

// Each trial of a slow worker costs the others a little time, so failed trials become rarer.
TEST(SpeedMeter, AWorkerThatStaysSlowIsTriedMoreRarely) {
  SpeedMeter meter;
  double now = 0;
  run_collectives(meter, now, 5, 1, 0.5);
  std::vector<double> waits;
  for (int trial = 0; trial < 6; ++trial) {
    run_collectives(meter, now, 1, 0, 0);
    const double since = now - 1;
    while (meter.shards_a_second(now) < 4 && now < since + 1000) run_collectives(meter, now, 1, 0, 0);
    waits.push_back(now - since);
    run_collectives(meter, now, 3, 1, 0.5);  // the worker loses its shards after three collectives
  }
  for (size_t i = 1; i < waits.size(); ++i) EXPECT_GE(waits[i], waits[i - 1]);
  EXPECT_NEAR(waits.front(), SpeedMeter::kDoublingSeconds, 1);
  EXPECT_NEAR(waits.back(), SpeedMeter::kLongestDoubling, 1);
  run_collectives(meter, now, 12, 1, 0.5);  // now the worker keeps its shards for more than kSteadySeconds
  run_collectives(meter, now, 6, 0, 0);
  EXPECT_DOUBLE_EQ(meter.shards_a_second(now), 4) << "as if it had never been slow";
}

// Steps take longer than a doubling. A worker that waits for the others within a step must not count as a worker
// without shards.
TEST(SpeedMeter, DoesNotCountWaitingInACollectiveAsTimeWithoutShards) {
  SpeedMeter meter;
  for (double now = 0; now < 600; now += 60) {
    meter.begin_collective(now);
    meter.took(1);
    EXPECT_DOUBLE_EQ(meter.shards_a_second(now + 59), 1) << now;
  }
}

// No shards of training are handed out during an evaluation, so its length must not count as time without shards.
TEST(SpeedMeter, DoesNotCountAnEvaluationAsTimeWithoutShards) {
  for (const int without : {0, 1, 4}) {
    SpeedMeter meter;
    double now = 0;
    run_collectives(meter, now, 3, 1, 0.5);
    run_collectives(meter, now, without, 0, 0);
    meter.begin_collective(now);
    now += 60;
    EXPECT_LE(meter.shards_a_second(now), 4) << without;
    run_collectives(meter, now, 1, 0, 0);
    EXPECT_LE(meter.shards_a_second(now), 8) << without;
  }
}

}  // namespace
}  // namespace sinew::distribute
