#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "advise/advise.h"
#include "base/random.h"
#include "rundir/rundir.h"

namespace sinew::advise {
namespace {

// Two lanes for 50 s, on a machine with two cores that did nothing else.
struct Recorded {
  StageTimes time{.lanes = 2};
  ResourceUse resources{.cores = 2, .cpu_seconds = 100};
  Recorded() {
    time[Stage::forward] = 40;
    time[Stage::backward] = 60;
  }
  void move(double seconds, Stage to) {
    time[Stage::backward] -= seconds;
    time[to] += seconds;
  }
  Verdict verdict() const { return judge(time, resources); }
};

double share_of(const Verdict& verdict, Limit limit) {
  return std::ranges::find(verdict.parts, limit, &Part::limit)->share;
}

TEST(Verdict, ARunThatOnlyComputesIsComputeBound) {
  const Verdict verdict = Recorded().verdict();
  EXPECT_EQ(verdict.limits, std::vector{Limit::compute});
  EXPECT_EQ(share_of(verdict, Limit::compute), 1);
  EXPECT_TRUE(verdict.remedies.empty());
}

TEST(Verdict, WaitingForSamplesIsInputBound) {
  Recorded run;
  run.move(55, Stage::data_wait);
  run.resources.cpu_seconds = 45;
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.limits, (std::vector{Limit::input, Limit::compute}));
  EXPECT_NEAR(share_of(verdict, Limit::input), 0.55, 1e-12);
  EXPECT_EQ(verdict.parts[0].evidence, "the lanes waited for samples 55.0 s of 100.0 s");
  ASSERT_FALSE(verdict.remedies.empty());
  EXPECT_NEAR(verdict.remedies[0].at_most, 0.55 / 0.45, 1e-12);
  EXPECT_TRUE(verdict.remedies[0].keeps_result);
}

TEST(Verdict, WaitingForOtherWorkersIsCommunicationBound) {
  Recorded run;
  run.move(40, Stage::member_wait);
  run.move(15, Stage::reduction);
  EXPECT_NEAR(share_of(run.verdict(), Limit::communication), 0.55, 1e-12);
}

TEST(Verdict, ALoneWorkerHasNoCommunication) {
  Recorded run;
  run.move(55, Stage::reduction);
  EXPECT_EQ(share_of(run.verdict(), Limit::communication), 0);
  EXPECT_EQ(share_of(run.verdict(), Limit::compute), 1);
}

TEST(Verdict, OtherProgramsStarveARun) {
  Recorded run;
  run.resources.cpu_seconds = 52;
  run.resources.queued_seconds = 47;
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.limits, (std::vector{Limit::compute, Limit::starved}));
  EXPECT_NEAR(share_of(verdict, Limit::starved), 0.47, 1e-12);
  EXPECT_NEAR(share_of(verdict, Limit::compute), 0.53, 1e-12);
  EXPECT_EQ(verdict.parts[0].evidence, "the model and the optimizer took 53.0 s of 100.0 s");
}

TEST(Verdict, ThreadsOfTheRunThatWaitForEachOtherDoNotStarveIt) {
  Recorded run;
  run.resources.queued_seconds = 80;  // but the run used all of both cores
  EXPECT_EQ(share_of(run.verdict(), Limit::starved), 0);
}

TEST(Verdict, AUsedUpQuotaStarvesARun) {
  Recorded run;
  run.resources.cores = 0.5;
  run.resources.cpu_seconds = 25;
  run.resources.throttled_seconds = 75;
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.limits, (std::vector{Limit::starved, Limit::compute}));
  EXPECT_EQ(verdict.remedies[0].what, "raise the CPU quota of the container");
  EXPECT_NEAR(verdict.remedies[0].at_most, 3, 1e-12);
}

TEST(Verdict, ThrottlingOfOtherProcessesIsBoundedByWhatTheRunDid) {
  Recorded run;
  run.resources.throttled_seconds = 1000;  // of the whole container, while this run had its cores for 100 s
  EXPECT_EQ(share_of(run.verdict(), Limit::starved), 0);
}

TEST(Verdict, AFullyStarvedRunStillHasARemedy) {
  Recorded run;
  run.resources = {.cores = 0.01, .throttled_seconds = 200};
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.limits, std::vector{Limit::starved});
  ASSERT_FALSE(verdict.remedies.empty());
  EXPECT_EQ(verdict.remedies[0].what, "raise the CPU quota of the container");
}

TEST(Verdict, TheStartAndTheEndOfTheRunAreNoPartOfIt) {
  Recorded run;
  run.time[Stage::startup] = 60;
  run.time[Stage::finish] = 40;
  run.resources.cpu_seconds = 200;
  EXPECT_EQ(share_of(run.verdict(), Limit::compute), 1);
}

TEST(Verdict, WhatStopsAllLanesCountsForAllOfThem) {
  StageTimes time{.lanes = 8};
  time[Stage::checkpoint] = 8 * 4;
  time[Stage::backward] = 8 * 6;
  const Verdict verdict = judge(time, {.cores = 8, .cpu_seconds = 80});
  EXPECT_NEAR(share_of(verdict, Limit::checkpoints), 0.4, 1e-12);
  EXPECT_NEAR(verdict.remedies[0].at_most, 0.4 / 0.6, 1e-12);
}

TEST(Verdict, LanesThatDoNotDivideTheShardsWait) {
  Recorded run;
  run.move(30, Stage::imbalance);
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.limits, (std::vector{Limit::compute, Limit::imbalance}));
  EXPECT_EQ(verdict.remedies[0].what, "a number of trainer.lanes that divides trainer.shards");
}

TEST(Verdict, AlwaysNamesALimitAndSharesAddUpToOne) {
  RandomStream random(random_key({7}));
  for (int i = 0; i < 2000; ++i) {
    StageTimes time{.lanes = static_cast<int64_t>(1 + random.below(9))};
    for (double& seconds : time.seconds) seconds = random.below(3) == 0 ? 0 : random.uniform() * 50;
    time[Stage::forward] += 0.001;
    const ResourceUse resources{.cores = random.uniform() * 16,
                                .cpu_seconds = random.uniform() * 400,
                                .queued_seconds = random.uniform() * 400,
                                .throttled_seconds = random.below(2) == 0 ? 0 : random.uniform() * 400};
    const Verdict verdict = judge(time, resources);
    double sum = 0;
    for (const Part& part : verdict.parts) {
      EXPECT_GE(part.share, 0);
      sum += part.share;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    ASSERT_FALSE(verdict.limits.empty());
    EXPECT_EQ(verdict.limits[0], verdict.parts[0].limit);
    for (const Remedy& remedy : verdict.remedies) {
      EXPECT_GT(remedy.at_most, 0);
      EXPECT_LT(remedy.at_most, 100);
    }
  }
}

TEST(Verdict, AReportWithoutARecordIsAnError) {
  rundir::Outcome outcome;
  EXPECT_THROW(judge(outcome, "runs/x"), Error);
  outcome.time = StageTimes{.lanes = 6};
  outcome.resources = ResourceUse();
  EXPECT_THROW(judge(outcome, "runs/x"), Error);
  (*outcome.time)[Stage::startup] = 1.99201 * 6;  // it ended before its first step
  EXPECT_THROW(judge(outcome, "runs/x"), Error);
  (*outcome.time)[Stage::forward] = 1;
  EXPECT_EQ(judge(outcome, "runs/x").limits, std::vector{Limit::compute});
}

// The report is a file, which may hold any numbers.
TEST(Verdict, NumbersThatAreNoneAreAnError) {
  const double kNone[] = {std::nan(""), -1, INFINITY};
  for (const double none : kNone) {
    rundir::Outcome outcome;
    outcome.time = Recorded().time;
    outcome.resources = ResourceUse{.throttled_seconds = none};
    EXPECT_THROW(judge(outcome, "runs/x"), Error);
    outcome.resources = ResourceUse{.queued_seconds = none};
    EXPECT_THROW(judge(outcome, "runs/x"), Error);
    outcome.resources = ResourceUse();
    (*outcome.time)[Stage::imbalance] = none;
    EXPECT_THROW(judge(outcome, "runs/x"), Error);
  }
}

TEST(Verdict, ACrossValidationNamesAFold) {
  rundir::Outcome outcome;
  outcome.folds.push_back({.fold = 0, .run = "trials/00000", .status = "done", .metrics = {}});
  try {
    judge(outcome, "runs/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint, "sinew advise runs/x/trials/00000");
  }
}

TEST(VerdictText, EachLimitHasAName) {
  const Verdict verdict = Recorded().verdict();
  std::set<std::string_view> names;
  for (const Part& part : verdict.parts) names.insert(name_of(part.limit));
  EXPECT_EQ(names.size(), static_cast<size_t>(Limit::starved) + 1);
  EXPECT_EQ(name_of(Limit::starved), "starved");
}

TEST(VerdictText, SaysTheLimitsTheStagesAndWhatHelps) {
  Recorded run;
  run.move(55, Stage::data_wait);
  run.resources.cpu_seconds = 45;
  EXPECT_EQ(
      verdict_text(run.verdict(), run.time),
      "input-bound, 55 %: the lanes waited for samples 55.0 s of 100.0 s\n"
      "compute-bound, 45 %: the model and the optimizer took 45.0 s of 100.0 s\n"
      "\n"
      "time of 2 lanes in 50.0 s\n"
      "  data_wait     55.0 %       55.00 s\n"
      "  forward       40.0 %       40.00 s\n"
      "  backward       5.0 %        5.00 s\n"
      "\n"
      "what can help\n"
      "  read samples faster: more data.prefetch.threads, smaller files, a faster disk: at most 122 % faster; the "
      "model stays the same\n");
}

}  // namespace
}  // namespace sinew::advise
