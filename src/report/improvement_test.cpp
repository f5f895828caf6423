#include <gtest/gtest.h>

#include <cmath>

#include "forecast/forecast.h"
#include "report/report.h"

namespace sinew::report {
namespace {

TEST(BestSoFar, CountsValuesThatDoNotImproveByMoreThanTheDelta) {
  struct Row {
    double value;
    bool improves;
    int64_t step, without;
  };
  BestSoFar so_far;
  int64_t step = 0;
  for (const Row& row : {Row{NAN, false, 0, 1}, Row{1.0, true, 2, 0}, Row{0.75, false, 2, 1}, Row{0.5, true, 4, 0},
                         Row{0.25, false, 4, 1}, Row{NAN, false, 4, 2}, Row{-HUGE_VAL, true, 7, 0}}) {
    EXPECT_EQ(take(so_far, Step(++step), row.value, true, 0.25), row.improves) << step;
    EXPECT_EQ(so_far.step, Step(row.step)) << step;
    EXPECT_EQ(so_far.without_improvement, row.without) << step;
  }
  EXPECT_TRUE(improves(0.5, 0.25, false, 0.2));
  EXPECT_FALSE(improves(0.5, 0.25, true, 0));
}

TEST(BestSoFar, SaysSinceWhenNothingImproved) {
  EXPECT_EQ(not_improved("val/loss", {0.25, Step(30), 5}, "evaluations"),
            "val/loss has not improved in 5 evaluations; its best was 0.25 at step 30");
  EXPECT_EQ(not_improved("x", {std::nullopt, Step(0), 2}, "reports"),
            "x has not improved in 2 reports; it has never been a number");
}

TEST(Monitored, IsTheMetricThatDecidesFirst) {
  spec::Job job;
  job.checkpoint.monitor = "val/accuracy";
  EXPECT_EQ(monitored_metric(job).metric, "val/accuracy");
  EXPECT_FALSE(monitored_metric(job).lower);
  job.objective = spec::Objective{"val/rmse", false, 0.5};
  EXPECT_EQ(monitored_metric(job).metric, "val/rmse");
  EXPECT_TRUE(monitored_metric(job).lower);
  job.early_stopping.monitor = "val/loss";
  job.early_stopping.mode = "max";
  job.early_stopping.min_delta = 0.25;
  EXPECT_EQ(monitored_metric(job).metric, "val/loss");
  EXPECT_FALSE(monitored_metric(job).lower) << "the job says so";
  EXPECT_EQ(monitored_metric(job).min_delta, 0.25);
}

TEST(Objective, IsMetAtItsValue) {
  const spec::Objective most{"val/loss", false, 0.5}, least{"val/accuracy", true, 0.9};
  EXPECT_TRUE(meets(most, 0.5) && meets(most, 0.25) && !meets(most, 0.75) && !meets(most, NAN));
  EXPECT_TRUE(meets(least, 0.9) && meets(least, 1) && !meets(least, 0.5) && !meets(least, NAN));
  EXPECT_EQ(objective_met(least, 0.95), "objective met: val/accuracy is 0.95, at least 0.9");
}

}  // namespace
}  // namespace sinew::report
