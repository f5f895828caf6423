#include "loop/pace.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sinew::loop {
namespace {

constexpr double kUnseen = 0.35;

TEST(PaceTest, TheFirstDurationCountsOnlyUntilThereIsASecondOne) {
  Pace pace;
  EXPECT_FALSE(pace.is_measured());
  EXPECT_EQ(pace.longest(), 0);
  pace.add(9);
  EXPECT_TRUE(pace.is_measured());
  EXPECT_EQ(pace.longest(), 9);
  EXPECT_EQ(pace.mean(), 9);
  pace.add(2);
  EXPECT_EQ(pace.longest(), 2);
  EXPECT_EQ(pace.count(), 1);
  pace.add(4);
  EXPECT_EQ(pace.longest(), 4);
  EXPECT_EQ(pace.mean(), 3);
}

TEST(PaceTest, NothingTakesNoTimeAndNothingMeasuredForecastsNothing) {
  Pace pace;
  EXPECT_EQ(pace.of(100, kUnseen).high, 0);
  pace.add(1);
  EXPECT_EQ(pace.of(0, kUnseen).high, 0);
  EXPECT_LT(pace.of(10, kUnseen).low, 10);
  EXPECT_GT(pace.of(10, kUnseen).high, 10);
}

TEST(PaceTest, EqualDurationsGiveANarrowRangeAroundTheTruth) {
  Pace pace;
  for (int i = 0; i < 1000; ++i) pace.add(0.25);
  const Range range = pace.of(400, kUnseen);
  EXPECT_LT(range.low, 100);
  EXPECT_GT(range.high, 100);
  EXPECT_GT(range.low, 80);
  EXPECT_LT(range.high, 120);
  EXPECT_GT(pace.of(10, kUnseen).low, 2.3) << "a short future is like the past";
}

TEST(PaceTest, OnAQuietMachineTheRangeIsNarrow) {
  Pace pace;
  for (int i = 0; i < 50; ++i) pace.add(i % 2 == 0 ? 0.24 : 0.26);
  const Range quiet = pace.of(1000, 0.1), shared = pace.of(1000, kUnseen);
  EXPECT_LT(quiet.high - quiet.low, 2 * 0.12 * 250);
  EXPECT_GT(shared.high - shared.low, 2 * 0.3 * 250);
}

TEST(PaceTest, ALoadThatBeganAMomentAgoMayStay) {
  Pace pace;
  for (int i = 0; i < 100; ++i) pace.add(1);
  for (int i = 0; i < 30; ++i) pace.add(3);
  const Range range = pace.of(100, kUnseen);
  EXPECT_GE(range.high, 290) << "all further pieces may be slow";
  EXPECT_LE(range.low, 105) << "or all of them fast again";
}

// A machine on which other programs come and go: the speed changes at random moments and stays until the next one.
std::vector<double> loaded(std::mt19937_64& random, size_t pieces, double changes) {
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<double> durations;
  double load = 1 + unit(random);
  for (size_t i = 0; i < pieces; ++i) {
    if (unit(random) < changes) load = 1 + unit(random);
    durations.push_back(0.1 * load * (0.9 + 0.2 * unit(random)));
  }
  return durations;
}

TEST(PaceTest, NineOfTenRangesHoldTheTrueTimeUnderRandomLoad) {
  std::mt19937_64 random(7);
  for (const double changes : {0.3, 0.05, 0.01, 0.003}) {
    int held = 0, all = 0;
    for (int story = 0; story < 400; ++story) {
      const size_t past = 20 + random() % 300, future = 20 + random() % 600;
      const std::vector<double> durations = loaded(random, past + future, changes);
      Pace pace;
      pace.add(5);  // the first one is not typical
      double truth = 0;
      for (size_t i = 0; i < durations.size(); ++i) i < past ? pace.add(durations[i]) : void(truth += durations[i]);
      const Range range = pace.of(static_cast<double>(future), kUnseen);
      held += range.low <= truth && truth <= range.high ? 1 : 0;
      ++all;
    }
    EXPECT_GE(held, all * (changes < 0.05 ? 87 : 90) / 100) << changes;
  }
}

TEST(PaceTest, TheLongestForgetsWhatIsOldAndOneOutlier) {
  Pace pace;
  pace.add(1);
  for (const double seconds : {50, 2, 3}) pace.add(seconds);
  EXPECT_EQ(pace.longest(), 50);
  pace.add(1);
  EXPECT_EQ(pace.longest(), 3);
  pace.add(50);
  EXPECT_EQ(pace.longest(), 50);
  for (int i = 0; i < 100; ++i) pace.add(1);
  EXPECT_EQ(pace.longest(), 1);
}

}  // namespace
}  // namespace sinew::loop
