#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "advise/advise.h"

namespace sinew::advise {
namespace {

using testing::HasSubstr;
using testing::Not;

PlannedJob a_job() {
  return {.name = "job",
          .model = "mlp",
          .parameters = 1000,
          .trained_parameters = 1000,
          .train_samples = 10'000,
          .val_samples = 1000,
          .test_samples = 2000,
          .batch_size = 100,
          .steps_per_epoch = 100,
          .steps = 1000,
          .evaluate_every = 100};
}

MeasuredRun a_run() {
  return {.steps = 90,
          .lanes = 2,
          .seconds = 10,
          .startup_seconds = 1,
          .step_seconds = 0.1,
          .step_error = 0.02,
          .evaluation_seconds = 0.5,
          .forward_share = 0.3,
          .save_seconds = 0.05,
          .end_seconds = 0.2,
          .step_flops = 1e9,
          .program_memory = 100 << 20,
          .data_memory = 20 << 20,
          .parameter_memory = 4000,
          .optimizer_memory = 8000,
          .peak_memory = 200 << 20};
}

void expect_ordered(const Estimate& estimate) {
  EXPECT_LE(estimate.low, estimate.expected);
  EXPECT_LE(estimate.expected, estimate.high);
}

TEST(PlanTest, AddsUpTheParts) {
  const Plan found = plan(a_job(), a_run());
  EXPECT_DOUBLE_EQ(found.steps.expected, 100);
  EXPECT_EQ(found.evaluation_count, 10);
  EXPECT_DOUBLE_EQ(found.evaluations.expected, 5);
  EXPECT_DOUBLE_EQ(found.end.expected, 0.25 + 1) << "a test of twice as many samples as the validation data has";
  EXPECT_DOUBLE_EQ(found.seconds.expected, 1 + 100 + 5 + 1.25);
  for (const Estimate& one : {found.startup, found.steps, found.evaluations, found.end, found.seconds, found.memory})
    expect_ordered(one);
  EXPECT_LT((found.seconds.high - found.seconds.low) / 2, 0.15 * found.seconds.expected);
}

TEST(PlanTest, AScatteredPaceGivesAWiderRange) {
  MeasuredRun scattered = a_run();
  scattered.step_error = 0.3;
  EXPECT_GT(plan(a_job(), scattered).seconds.high, plan(a_job(), a_run()).seconds.high + 10);
}

TEST(PlanTest, AnEvaluationThatWasNotMeasuredIsGuessedFromTheForwardPass) {
  MeasuredRun run = a_run();
  run.evaluation_seconds = 0;
  const Plan found = plan(a_job(), run);
  EXPECT_DOUBLE_EQ(found.evaluations.expected, 10 * 10 * 0.1 * 0.3);
  EXPECT_THAT(plan_text(found, {}), HasSubstr("no evaluation was measured"));
}

TEST(PlanTest, ATrainingThatEndedInTheShortRunIsKnown) {
  MeasuredRun run = a_run();
  run.finished = true;
  run.seconds = 7;
  EXPECT_DOUBLE_EQ(plan(a_job(), run).seconds.expected, 7);
}

TEST(PlanTest, ABudgetBoundsTheTime) {
  PlannedJob job = a_job();
  job.budget_seconds = 60;
  const Plan found = plan(job, a_run());
  EXPECT_DOUBLE_EQ(found.seconds.high, 60);
  EXPECT_LT(found.seconds.low, 59) << "a training ends before its budget";
  expect_ordered(found.seconds);
  EXPECT_THAT(plan_text(found, {}), HasSubstr("note: budget.time ends the training after 1m00s"));
}

TEST(PlanTest, ATimeEndsTheTraining) {
  PlannedJob job = a_job();
  job.steps.reset();
  job.max_seconds = 600;
  const Plan found = plan(job, a_run());
  EXPECT_NEAR(found.startup.expected + found.steps.expected + found.evaluations.expected, 600, 1);
  EXPECT_GT(found.evaluation_count, 50);
  EXPECT_GE(found.seconds.high, 600);
  EXPECT_LE(found.seconds.low, 601) << "the end may be short";
  EXPECT_THAT(plan_text(found, {}), HasSubstr("steps in 10m00s"));
}

TEST(PlanTest, EvaluationsMayComeAtTimes) {
  PlannedJob job = a_job();
  job.evaluate_every = 0;
  job.evaluate_every_seconds = 10;
  EXPECT_EQ(plan(job, a_run()).evaluation_count, 11) << "ten in 100 s of steps, and one after the last";
  job.steps.reset();
  job.max_seconds = 600;
  EXPECT_NEAR(plan(job, a_run()).evaluation_count, 57, 1);
}

TEST(PlanTest, AThresholdNeedsAnotherEvaluation) {
  PlannedJob job = a_job();
  job.chooses_threshold = true;
  EXPECT_DOUBLE_EQ(plan(job, a_run()).end.expected, plan(a_job(), a_run()).end.expected + 0.5);
}

TEST(PlanTest, NotesAreSaid) {
  PlannedJob job = a_job();
  job.notes = {"the plan is for one of the 5 folds"};
  const Plan found = plan(job, a_run());
  EXPECT_THAT(plan_text(found, {}), HasSubstr("note: the plan is for one of the 5 folds\n"));
  EXPECT_EQ(nlohmann::json::parse(plan_json(found, {})).at("notes").at(0), job.notes[0]);
}

TEST(PlanTest, AsManyStepsFitAsTakeTheTime) {
  const Plan found = plan(a_job(), a_run());
  const Estimate fit = steps_within(found, found.seconds.expected);
  EXPECT_NEAR(fit.expected, 1000, 2);
  expect_ordered(fit);
  EXPECT_EQ(steps_within(found, 0.5).expected, 0);
}

TEST(PlanTest, AJobWithoutEvaluationsPlansNone) {
  PlannedJob job = a_job();
  job.val_samples = job.test_samples = 0;
  const Plan found = plan(job, a_run());
  EXPECT_EQ(found.evaluation_count, 0);
  EXPECT_EQ(found.evaluations.high, 0);
  EXPECT_THAT(plan_text(found, {}), Not(HasSubstr("evaluations  ")));
}

TEST(PlanTest, TheCostIsTheTimeTimesThePrice) {
  const Plan found = plan(a_job(), a_run());
  const auto json = nlohmann::json::parse(plan_json(found, {.price = 3600, .within_seconds = 60}));
  EXPECT_DOUBLE_EQ(json.at("cost").at("expected"), found.seconds.expected);
  EXPECT_GT(json.at("steps_within").at("low"), 0);
  EXPECT_FALSE(nlohmann::json::parse(plan_json(found, {})).contains("cost"));
  EXPECT_THAT(plan_text(found, {.price = 3600}), HasSubstr("cost"));
}

}  // namespace
}  // namespace sinew::advise
