#include <gtest/gtest.h>

#include <numeric>

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
}

TEST(Verdict, TheStartOfTheRunIsNoPartOfIt) {
  Recorded run;
  run.time[Stage::startup] = 30;
  run.time[Stage::idle] = 30;  // of the other lane
  EXPECT_EQ(share_of(run.verdict(), Limit::compute), 1);
}

TEST(Verdict, UnusedCoresAreNamed) {
  Recorded run;
  run.resources.cores = 8;
  const Verdict verdict = run.verdict();
  ASSERT_EQ(verdict.remedies.size(), 1U);
  EXPECT_EQ(verdict.remedies[0].what, "use all cores: a higher trainer.lanes");
  EXPECT_NEAR(verdict.remedies[0].at_most, 3, 1e-12);
}

TEST(Verdict, AlwaysNamesALimitAndSharesAddUpToOne) {
  RandomStream random(random_key({7}));
  for (int i = 0; i < 2000; ++i) {
    StageTimes time{.lanes = static_cast<int64_t>(1 + random.below(9))};
    for (double& seconds : time.seconds) seconds = random.below(3) == 0 ? 0 : random.uniform() * 50;
    time[Stage::forward] += 0.001;
    const ResourceUse resources{.cores = 1 + random.uniform() * 16,
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
    for (const Remedy& remedy : verdict.remedies) EXPECT_GT(remedy.at_most, 0);
  }
}

TEST(Verdict, AReportWithoutARecordIsAnError) {
  rundir::Outcome outcome;
  EXPECT_THROW(judge(outcome, "runs/x"), Error);
  outcome.time = StageTimes{.lanes = 2};
  outcome.resources = ResourceUse();
  EXPECT_THROW(judge(outcome, "runs/x"), Error);  // it ended before its first step
  (*outcome.time)[Stage::forward] = std::nan("");
  EXPECT_THROW(judge(outcome, "runs/x"), Error);
  (*outcome.time)[Stage::forward] = 1;
  EXPECT_EQ(judge(outcome, "runs/x").limits, std::vector{Limit::compute});
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
      "  read samples faster: more data.prefetch_threads, smaller files, a faster disk: at most 122 % faster; the "
      "model stays the same\n");
}

}  // namespace
}  // namespace sinew::advise
