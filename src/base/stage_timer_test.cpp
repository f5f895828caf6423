#include "base/stage_timer.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "base/hand_clock.h"

namespace sinew {
namespace {

TEST(StageTimer, TheStagesOfALaneAddUpToTheTimeThatPassed) {
  HandClock clock;
  StageTimer timer(2, clock.seconds - 1, clock);
  clock.seconds = clock.seconds + 2;
  timer.enter(0, Stage::forward);
  timer.enter(1, Stage::data_wait);
  clock.seconds = clock.seconds + 2;
  timer.enter(0, Stage::backward);
  clock.seconds = clock.seconds + 4;
  timer.enter(0, Stage::imbalance);
  clock.seconds = clock.seconds + 1;
  timer.enter_all(Stage::loop);
  clock.seconds = clock.seconds + 5;
  const StageTimes times = timer.times();
  EXPECT_EQ(times.lanes, 2);
  EXPECT_EQ(times[Stage::startup], 6);
  EXPECT_EQ(times[Stage::forward], 2);
  EXPECT_EQ(times[Stage::backward], 4);
  EXPECT_EQ(times[Stage::imbalance], 1);
  EXPECT_EQ(times[Stage::data_wait], 7);
  EXPECT_EQ(times[Stage::loop], 10);
  EXPECT_EQ(times.total(), 30);
}

TEST(StageTimer, KeepsWhatEachLaneDoesWhileItRecords) {
  HandClock clock;
  const double began = clock.seconds;
  StageTimer timer(2, began, clock);
  timer.enter(0, Stage::forward);
  clock.seconds = began + 1;
  timer.record(3);
  clock.seconds = began + 2;
  timer.enter(0, Stage::backward);
  clock.seconds = began + 4;
  const std::vector<StageSpan> expected = {{0, Stage::forward, began + 1, began + 2},
                                           {0, Stage::backward, began + 2, began + 4},
                                           {1, Stage::startup, began + 1, began + 4}};
  EXPECT_EQ(timer.recorded(), expected);
  timer.enter(0, Stage::loop);
  EXPECT_TRUE(timer.recorded().empty()) << "nothing is recorded any more";
  EXPECT_EQ(timer.times()[Stage::forward], 2) << "a recording changes no sum";
}

TEST(StageTimer, KeepsNoMoreSpansThanAsked) {
  HandClock clock;
  StageTimer timer(1, clock.seconds, clock);
  timer.record(3);
  for (int i = 0; i < 10; ++i) timer.enter(0, Stage::forward);
  EXPECT_EQ(timer.recorded().size(), 3U);
}

TEST(StageTimer, OtherThreadsMayReadWhileLanesEnterStages) {
  const double began = system_clock().monotonic_seconds();
  StageTimer timer(2, began, system_clock());
  std::vector<std::thread> lanes;
  for (const int lane : {0, 1}) {
    lanes.emplace_back([&, lane] {
      for (int i = 0; i < 20'000; ++i) timer.enter(lane, static_cast<Stage>(i % static_cast<int>(kStages)));
    });
  }
  for (int i = 0; i < 200; ++i) EXPECT_EQ(timer.times().lanes, 2);
  for (std::thread& lane : lanes) lane.join();
  const double before = system_clock().monotonic_seconds() - began;
  const double total = timer.times().total();
  const double after = system_clock().monotonic_seconds() - began;
  EXPECT_GE(total, 2 * before - 1e-6);
  EXPECT_LE(total, 2 * after + 1e-6);
}

TEST(StageTimer, StagesThatTookNoTimeWorthShowingAreLeftOut) {
  StageTimes times{.lanes = 1};
  EXPECT_TRUE(longest_stages(times).empty());
  times[Stage::forward] = 30;
  times[Stage::backward] = 60;
  times[Stage::loop] = 0.01;
  times[Stage::digest] = 1;
  EXPECT_EQ(longest_stages(times), (std::vector{Stage::backward, Stage::forward, Stage::digest}));
}

TEST(StageTimer, EachStageHasAName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    EXPECT_EQ(stage_of(name_of(stage)), stage);
    names.insert(name_of(stage));
  }
  EXPECT_EQ(names.size(), kStages);
  EXPECT_EQ(stage_of("lunch"), std::nullopt);
}

}  // namespace
}  // namespace sinew
