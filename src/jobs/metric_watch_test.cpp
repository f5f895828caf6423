// Tests when the metrics of a run make it end.
#include "jobs/metric_watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "jobs/samples.h"

namespace sinew::jobs {
namespace {

TEST(MetricWatch, EndsWhenTheObjectiveIsMet) {
  MetricWatch watch(job_of("params: {lr: 1}\nobjective: val/accuracy >= 0.9"));
  EXPECT_FALSE(watch.take(1, {{"val/accuracy", 0.8}, {"train/accuracy", 1}}));
  EXPECT_FALSE(watch.take(2, {{"val/accuracy", NAN}}));
  const auto verdict = watch.take(3, {{"val/accuracy", 0.9}});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->reason, StopReason::objective);
  EXPECT_TRUE(watch.objective()->met);
  EXPECT_EQ(watch.best()->step, 3);
  watch.take(4, {{"val/accuracy", 0.89}});  // metrics of the epoch during which the run ends
  EXPECT_TRUE(watch.objective()->met);
  EXPECT_EQ(watch.objective()->value, 0.9);
}

TEST(MetricWatch, CountsReportsWithoutImprovement) {
  MetricWatch watch(job_of("params: {lr: 1}\nearly_stopping: {monitor: val/loss, patience: 2, min_delta: 0.1}"));
  EXPECT_FALSE(watch.take(1, {{"val/loss", 1.0}}));
  EXPECT_FALSE(watch.take(2, {{"val/loss", 0.95}}));  // improves by less than min_delta
  EXPECT_FALSE(watch.take(3, {{"val/loss", 0.8}}));
  EXPECT_FALSE(watch.take(4, {{"train/loss", 5}}));
  EXPECT_FALSE(watch.take(5, {{"val/loss", NAN}}));
  const auto verdict = watch.take(6, {{"val/loss", 0.75}});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->reason, StopReason::early_stop);
  EXPECT_EQ(watch.best()->value, 0.8);
}

}  // namespace
}  // namespace sinew::jobs
