// Tests how much of its time and money a study has used, and which trials may still start.
#include "study/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hand_clock.h"

namespace sinew::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StudyBudget, CountsTheTimeSinceTheLeaderJoined) {
  HandClock clock;
  spec::TuneOptions tune;
  tune.seconds = 100;
  const StudyBudget budget(tune, clock);
  EXPECT_EQ(budget.used(), 0);
  clock.seconds += 25;
  EXPECT_EQ(budget.used(), 0.25);
  EXPECT_TRUE(budget.summary("runs/x", true).empty()) << "no limit of the cost";
}

TEST(StudyBudget, CountsTheCostOfAllTrialsWhileTheyTrain) {
  HandClock clock;
  spec::TuneOptions tune;
  tune.cost = 2;
  tune.price = 1;  // an hour
  StudyBudget budget(tune, clock);
  StudyEvent report{.kind = StudyEvent::Kind::report, .id = 7};
  report.seconds = 1800;
  budget.observe(report);  // an event of another leader
  EXPECT_EQ(budget.used(), 0.25);
  budget.start(7);  // trial 7 continues from its checkpoint
  budget.start(8);
  clock.seconds += 1800;
  EXPECT_EQ(budget.seconds_of(7), 3600);
  EXPECT_EQ(budget.used(), 0.75);
  budget.stop(7);
  budget.stop(8);
  clock.seconds += 1800;
  EXPECT_EQ(budget.used(), 0.75);
  EXPECT_THAT(budget.summary("runs/x", true), ElementsAre("it took 1.50 hours of training and cost 1.50"));
  budget.start(8);
  clock.seconds += 3600;
  EXPECT_THAT(budget.summary("runs/x", true),
              ElementsAre("it took 2.50 hours of training and cost 2.50",
                          "tune.cost is spent; to continue with more: sinew tune resume runs/x --cost 4"));
  EXPECT_EQ(budget.summary("runs/x", false).size(), 1U) << "all planned trials have started";
  StudyEvent extend{.kind = StudyEvent::Kind::extend, .trials = 9};
  extend.cost = 5;
  budget.observe(extend);
  EXPECT_EQ(budget.used(), 0.5);
}

TEST(DrainMode, LeavesTimeForPausedTrialsAndAlwaysFindsOne) {
  EXPECT_EQ(drain_mode(0.7, true, true), DrainMode::none);
  EXPECT_EQ(drain_mode(0.9, true, true), DrainMode::no_new_trials);
  EXPECT_EQ(drain_mode(0.9, false, true), DrainMode::none);
  EXPECT_EQ(drain_mode(1, false, true), DrainMode::finish_started);
  EXPECT_EQ(drain_mode(1, false, false), DrainMode::no_new_trials) << "paused trials continue until one is complete";
}

}  // namespace
}  // namespace sinew::study
