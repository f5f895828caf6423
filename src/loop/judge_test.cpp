// Tests how an evaluation changes the best step, early stopping and the objective.
#include "loop/judge.h"

#include <gtest/gtest.h>

namespace sinew::loop {
namespace {

spec::Job two_monitors() {
  spec::Job job;
  job.checkpoint.monitor = "val/accuracy";
  job.checkpoint.mode = "max";
  job.early_stopping.monitor = "val/loss";
  job.early_stopping.mode = "min";
  job.early_stopping.patience = 2;
  return job;
}

TEST(Judge, EachMonitorHasItsOwnBestValue) {
  const spec::Job job = two_monitors();
  struct Row {
    double accuracy, loss;
    bool improved;
    int64_t best, patience, without;
  };
  EvaluationState state;
  int64_t step = 0;
  for (const Row& row :
       {Row{0.5, 1.0, true, 10, 10, 0}, Row{0.6, 1.1, true, 20, 10, 1}, Row{0.4, 0.9, false, 20, 30, 0},
        Row{0.7, 1.0, true, 40, 30, 1}, Row{0.8, 1.0, true, 50, 30, 2}}) {
    step += 10;
    const Judgement verdict = judge(state, Step(step), {{"val/accuracy", row.accuracy}, {"val/loss", row.loss}}, job);
    state = verdict.state;
    EXPECT_EQ(verdict.improved, row.improved) << step;
    EXPECT_EQ(state.best_step, Step(row.best)) << step;
    EXPECT_EQ(state.patience.step, Step(row.patience)) << step;
    EXPECT_EQ(state.patience.without_improvement, row.without) << step;
    EXPECT_EQ(state.stop.empty(), step < 50) << state.stop;
  }
  EXPECT_EQ(state.best, 0.8);
  EXPECT_EQ(state.patience.best, 0.9);
  EXPECT_EQ(state.best_steps, (std::vector<Step>{Step(10), Step(20), Step(40), Step(50)}));
  EXPECT_NE(state.stop.find("val/loss"), std::string::npos) << state.stop;
  EXPECT_NE(state.stop.find("at step 30"), std::string::npos) << state.stop;
}

TEST(Judge, OneMetricIsJudgedOnce) {
  spec::Job job = two_monitors();
  job.checkpoint.monitor = "val/loss";
  job.checkpoint.mode = "min";
  job.early_stopping.min_delta = 0.5;
  EvaluationState state;
  state = judge(state, Step(10), {{"val/loss", 2.0}}, job).state;
  const Judgement less = judge(state, Step(20), {{"val/loss", 1.8}}, job);  // below min_delta
  EXPECT_FALSE(less.improved);
  EXPECT_EQ(less.state.patience.without_improvement, 1);
  EXPECT_EQ(less.state.best, less.state.patience.best);
  EXPECT_EQ(less.state.best_step, less.state.patience.step);
}

// A checkpoint of an older version has only one best value: that of early_stopping.monitor.
TEST(Judge, IgnoresABestValueOfTheOtherMetric) {
  EvaluationState old;
  old.best = old.patience.best = 0.05;  // this value is a loss
  old.best_step = old.patience.step = Step(10);
  const Judgement verdict = judge(old, Step(20), {{"val/accuracy", 0.01}, {"val/loss", 0.04}}, two_monitors());
  EXPECT_TRUE(verdict.improved);
  EXPECT_EQ(verdict.state.best, 0.01);
  EXPECT_EQ(verdict.state.patience.best, 0.04);
}

TEST(Judge, NamesTheMetricsThatAnEvaluationLacks) {
  spec::Job job = two_monitors();
  EXPECT_TRUE(missing_metrics({{"val/accuracy", 0.5}, {"val/loss", 1.0}}, job).empty());
  job.checkpoint.monitor = job.early_stopping.monitor = "val/auc";
  job.objective = spec::Objective{"val/f1", true, 0.9};
  const auto missing = missing_metrics({{"val/accuracy", 0.5}, {"val/loss", 1.0}}, job);
  ASSERT_EQ(missing.size(), 2u);
  for (const char* part : {"no val/auc", "checkpoint.monitor", "early_stopping.monitor", "both classes"})
    EXPECT_NE(missing.at("val/auc").find(part), std::string::npos) << missing.at("val/auc");
  EXPECT_NE(missing.at("val/f1").find("objective"), std::string::npos) << missing.at("val/f1");
  job.early_stopping.monitor = "";
  job.objective.reset();
  job.checkpoint.keep_best = 0;
  EXPECT_TRUE(missing_metrics({}, job).empty());
}

TEST(Judge, RemembersALimitedNumberOfBestSteps) {
  spec::Job job = two_monitors();
  job.checkpoint.keep_best = 3;
  EvaluationState state;
  for (int64_t step = 1; step <= 100; ++step)
    state = judge(state, Step(step), {{"val/accuracy", static_cast<double>(step)}}, job).state;
  EXPECT_EQ(state.best_steps.back(), Step(100));
  EXPECT_GE(state.best_steps.size(), 3U);
  EXPECT_LE(state.best_steps.size(), 30U);
}

TEST(Judge, ANewEndIsDecidedFromTheLastEvaluation) {
  spec::Job job = two_monitors();
  EvaluationState state;
  state.last = {{"val/loss", 0.3}, {"val/accuracy", 0.8}};
  state.patience.without_improvement = 2;
  state.stop = "val/loss has not improved";
  EXPECT_FALSE(decide_end(state, job).stop.empty()) << "nothing has changed";
  job.early_stopping.patience = 3;
  EXPECT_EQ(decide_end(state, job).stop, "");
  job.objective = spec::Objective{.metric = "val/accuracy", .at_least = true, .value = 0.75};
  EXPECT_TRUE(decide_end(state, job).objective_met);
  EXPECT_NE(decide_end(state, job).stop, "");
  state.objective_met = true;
  job.objective->value = 0.9;
  EXPECT_FALSE(decide_end(state, job).objective_met);
  EXPECT_EQ(decide_end(state, job).stop, "");
}

}  // namespace
}  // namespace sinew::loop
