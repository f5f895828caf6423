// Tests how many trials a study starts: as many as are planned, and no more than its space has points.
#include <gtest/gtest.h>

#include "base/exit_code.h"
#include "study/scheduler.h"

namespace sinew::study {
namespace {

SchedulerOptions grid_options(const char* space, int64_t trials, std::vector<StudyEvent>& record) {
  SchedulerOptions options{{tune::read_space(space), {tune::Direction::minimize}, 7, trials}};
  options.sampler = "grid";
  options.pruner = "none";
  options.trials = trials;
  options.record = [&](const StudyEvent& event) { record.push_back(event); };
  return options;
}

// The values of a grid and the budget of some pruners depend on the number of planned trials, so every leader must know
// the new number.
TEST(Plan, ALeaderThatJoinsAnExtendedStudyDecidesTheSame) {
  constexpr const char* kSquare =
      R"([{"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":0,"high":1}])";
  std::vector<StudyEvent> record, more;
  TrialScheduler here(grid_options(kSquare, 4, record));
  for (int trial = 0; trial < 3; ++trial) {
    ASSERT_TRUE(here.next());
    here.end(trial, {kDone, 0}, Outcome{{1}});
  }
  record.push_back({.kind = StudyEvent::Kind::extend, .trials = 25});
  here.observe(StudyEvent(record.back()));
  TrialScheduler later(grid_options(kSquare, 4, more), record);
  EXPECT_EQ(later.study().options().budget, 25);
  for (int trial = 3; trial < 25; ++trial) {
    ASSERT_TRUE(here.next());
    ASSERT_TRUE(later.next());
    EXPECT_TRUE(tune::same_point(here.study().trial(trial).point, later.study().trial(trial).point)) << trial;
    here.end(trial, {kDone, 0}, Outcome{{1}});
    later.end(trial, {kDone, 0}, Outcome{{1}});
  }
  EXPECT_FALSE(here.next());
  EXPECT_FALSE(later.next());
}

TEST(Plan, ASearchOfFewPointsTriesEachOnce) {
  std::vector<StudyEvent> record;
  TrialScheduler scheduler(grid_options(
      R"([{"name":"a","type":"cat","choices":[1,2]},{"name":"b","type":"int","low":1,"high":3}])", 50, record));
  for (int turn = 0; turn < 100 && !scheduler.over(); ++turn) {
    while (scheduler.next()) {
    }
    if (!scheduler.running().empty()) scheduler.end(scheduler.running()[0], {kDone, 0}, Outcome{{1}});
  }
  EXPECT_TRUE(scheduler.over());
  EXPECT_EQ(scheduler.study().next_id(), 6);
  EXPECT_EQ(scheduler.ended_early(), "every point of the search space was tried");
}

// The user asked for more trials, so the study runs them although they may gain little.
TEST(Plan, AnExtendedStudyDoesNotEndEarly) {
  std::vector<StudyEvent> record;
  auto options = grid_options(R"([{"name":"x","type":"float","low":0,"high":1}])", 40, record);
  options.end_early = true;
  const auto run = [&](TrialScheduler& scheduler) {
    for (int turn = 0; turn < 200 && !scheduler.over(); ++turn) {
      while (scheduler.next()) {
      }
      if (scheduler.running().empty()) continue;
      const int64_t id = scheduler.running()[0];
      const double x = scheduler.study().trial(id).point[0];
      scheduler.end(id, {kDone, 0}, Outcome{{(x - 0.3) * (x - 0.3)}});
    }
  };
  options.sampler = "gp";
  TrialScheduler scheduler(options);
  run(scheduler);
  ASSERT_TRUE(scheduler.ended_early());
  ASSERT_LT(scheduler.study().next_id(), 40);
  record.push_back({.kind = StudyEvent::Kind::extend, .trials = 41});
  TrialScheduler later(options, record);
  run(later);
  EXPECT_EQ(later.study().next_id(), 41);
}

}  // namespace
}  // namespace sinew::study
