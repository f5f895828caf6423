#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "advise/advise.h"
#include "base/random.h"
#include "rundir/rundir.h"

namespace sinew::advise {
namespace {

// Two lanes for 50 s, on a machine with two cores that did nothing else.
struct Recorded : Record {
  Recorded() {
    time.lanes = 2;
    resources.cores = 2;
    resources.cpu_seconds = 100;
    time[Stage::forward] = 40;
    time[Stage::backward] = 60;
  }
  void move(double seconds, Stage to) {
    time[Stage::backward] -= seconds;
    time[to] += seconds;
  }
  Verdict verdict() const { return judge(*this); }
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
  EXPECT_NEAR(verdict.remedies[0].gain.expected, 0.55 / 0.45, 1e-12);
  EXPECT_LT(verdict.remedies[0].gain.low, 0.55 / 0.45);
  EXPECT_GT(verdict.remedies[0].gain.high, 0.55 / 0.45);
  EXPECT_TRUE(verdict.remedies[0].keeps_result);
}

ConditionTime found(Condition condition, double ratio, double error) {
  return {condition, 24, 0.01 * ratio, {ratio, ratio - error, ratio + error}};
}

TEST(Verdict, AnExperimentShowsThatComputingWaitsForMemory) {
  Recorded run;
  run.experiments = {found(Condition::usual, 1, 0), found(Condition::cores_busy, 1.9, 0.1),
                     found(Condition::memory_busy, 1.6, 0.05)};
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.limits, (std::vector{Limit::bandwidth, Limit::compute}));
  EXPECT_NEAR(share_of(verdict, Limit::bandwidth), 0.6, 1e-12);
  EXPECT_NEAR(share_of(verdict, Limit::compute), 0.4, 1e-12);
  EXPECT_NE(verdict_text(verdict, run.time).find("memory-bandwidth-bound, 60 %"), std::string::npos);
  run.experiments[2] = found(Condition::memory_busy, 1.05, 0.04);  // no more than noise
  EXPECT_EQ(run.verdict().limits, std::vector{Limit::compute});
}

TEST(Verdict, AnExperimentWithReadySamplesSaysWhatFasterReadingGains) {
  Recorded run;
  run.move(55, Stage::data_wait);
  run.resources.cpu_seconds = 39;
  const double from_shares = run.verdict().remedies.at(0).gain.high - run.verdict().remedies.at(0).gain.low;
  run.experiments = {found(Condition::usual, 1, 0), found(Condition::samples_ready, 0.4, 0.01)};
  const Estimate gain = run.verdict().remedies.at(0).gain;
  EXPECT_NEAR(gain.expected, 1 / 0.4 - 1, 1e-12);
  EXPECT_LT(gain.low, gain.expected);
  EXPECT_LT(gain.high - gain.low, from_shares) << "what was measured is better known";
}

TEST(Verdict, ManyCallsOnFewNumbersAreOverhead) {
  // 1,000 calls of 2 µs that have no work, and a product at half of the peak
  const std::vector<OperatorUse> operators = {{.name = "add", .calls = 1000, .seconds = 2e-3, .bytes = 1e3},
                                              {.name = "mm", .calls = 1, .seconds = 2e-3, .flops = 1e9}};
  Recorded run;
  run.operators = operators;
  EXPECT_EQ(share_of(run.verdict(), Limit::overhead), 0) << "the machine was not measured";
  run.peak_flops = 1e12;
  run.bandwidth = 1e10;
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.limits.size(), 2U);
  EXPECT_NEAR(share_of(verdict, Limit::overhead), 0.5, 0.01);
  EXPECT_NEAR(share_of(verdict, Limit::compute), 0.5, 0.01);
}

TEST(Verdict, OfComputingItNamesWhatOtherModelsWouldTake) {
  Recorded run;
  spec::Job job;
  job.model.name = "mlp";
  job.model.activation = "gelu";
  run.peak_flops = 1e12;
  run.bandwidth = 1e10;
  run.operators = {{.name = "mm 8x8 * 8x8", .calls = 1, .seconds = 6e-3, .flops = 6e9},
                   {.name = "gelu 8x8", .calls = 1, .seconds = 2e-3, .bytes = 2e7},
                   {.name = "gelu_backward 8x8", .calls = 1, .seconds = 2e-3, .bytes = 2e7}};
  const auto remedies = judge(run, &job).remedies;
  const auto cheaper = std::ranges::find(remedies, std::vector<std::string>{"model.activation=relu"}, &Remedy::options);
  ASSERT_NE(cheaper, remedies.end());
  EXPECT_FALSE(cheaper->keeps_result);
  EXPECT_NEAR(cheaper->gain.high, 1 / 0.6 - 1, 1e-9) << "all of the two fifths";
  EXPECT_LT(cheaper->gain.low, cheaper->gain.expected);
  job.model.activation = "relu";
  for (const Remedy& remedy : judge(run, &job).remedies) EXPECT_TRUE(remedy.options.empty()) << remedy.what;
}

TEST(Verdict, ARatioThatCannotBeSaysNothing) {
  Recorded run;
  for (const StepRatio& ratio :
       {StepRatio{2, 0, 3}, StepRatio{2, 2.5, 3}, StepRatio{2, 1, NAN}, StepRatio{INFINITY, 1, INFINITY}}) {
    run.experiments = {{Condition::memory_busy, 24, 0.1, ratio}};
    EXPECT_EQ(share_of(run.verdict(), Limit::bandwidth), 0);
  }
}

TEST(Verdict, ReadySamplesThatGainNoMoreThanNoiseAreNoRemedy) {
  Recorded run;
  run.experiments = {found(Condition::usual, 1, 0), found(Condition::samples_ready, 0.94, 0.07)};
  EXPECT_TRUE(run.verdict().remedies.empty());
}

TEST(Verdict, WhatCameBetweenTwoRecordsSaysWhatLimitsNow) {
  Recorded earlier;
  earlier.loading.samples = 10;
  Record later = earlier;
  later.time[Stage::data_wait] += 30;
  later.time[Stage::forward] += 10;
  later.resources.cpu_seconds += 10;
  later.loading.samples = 25;
  earlier.model.emplace(rundir::ModelUse{.flops_per_step = 100, .steps = 10, .flops = 1000});
  later.model = rundir::ModelUse{.flops_per_step = 100, .steps = 14, .flops = 1400};
  const auto now = between(earlier, later);
  ASSERT_TRUE(now);
  EXPECT_DOUBLE_EQ(now->seconds(), 20);
  EXPECT_EQ(now->loading.samples, 15);
  EXPECT_EQ(now->model->steps, 4);
  EXPECT_EQ(now->model->flops, 400);
  EXPECT_EQ(judge(*now).limits, (std::vector{Limit::input, Limit::compute}));
  EXPECT_FALSE(between(earlier, earlier)) << "nothing came between them";
  later.time.lanes = 1;
  EXPECT_FALSE(between(earlier, later)) << "another attempt";
}

TEST(VerdictText, OffersWhatARunThatTrainsCanBeAskedFor) {
  Recorded run;
  run.move(40, Stage::checkpoint);
  spec::Job job;
  for (const auto& [interval, command] : {std::pair{"10st", "now: sinew control runs/a checkpoint.interval="},
                                          {"1m", "now: sinew control runs/a checkpoint.interval="},
                                          {"1ep", ""}}) {
    job.checkpoint.interval = interval;
    job.trainer.max_duration = {1000, spec::Duration::Unit::epochs};
    const Verdict verdict = judge(run, &job);
    EXPECT_EQ(verdict_text(verdict, run.time).find("now:"), std::string::npos) << "it has ended";
    const std::string text = verdict_text(verdict, run.time, "runs/a");
    EXPECT_NE(text.find("    checkpoint.interval="), std::string::npos) << text;
    EXPECT_EQ(text.find("now:") != std::string::npos, *command != 0) << text;
    EXPECT_NE(text.find(command), std::string::npos) << text;
  }
}

TEST(Verdict, WaitingForOtherWorkersIsCommunicationBound) {
  Recorded run;
  run.move(40, Stage::member_wait);
  run.move(15, Stage::reduction);
  EXPECT_NEAR(share_of(run.verdict(), Limit::communication), 0.55, 1e-12);
}

TEST(Verdict, CommunicationHasItsBytesAsEvidence) {
  Recorded run;
  run.move(60, Stage::member_wait);
  run.resources.network = {.sent_bytes = 4'080'000'000, .received_bytes = 2'000'000'000};
  run.model = rundir::ModelUse{.gradient_bytes = 1'000'000, .steps = 4000};
  const Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.parts[0].evidence,
            "sums of other workers took 60.0 s of 100.0 s; sent 1.02 times the gradients a step, 81.6MB/s, received "
            "40.0MB/s");
  run.model.reset();
  EXPECT_NE(run.verdict().parts[0].evidence.find("; sent 81.6MB/s"), std::string::npos);
}

TEST(Verdict, ReadingHasItsRateAsEvidence) {
  Recorded run;
  run.move(55, Stage::data_wait);
  run.resources.cpu_seconds = 45;
  run.loading.read_bytes = 600'000'000;  // in 50 s
  EXPECT_EQ(run.verdict().parts[0].evidence, "the lanes waited for samples 55.0 s of 100.0 s; read 12.0MB/s");
}

TEST(Verdict, TheModelHasItsLayersAndItsSpeed) {
  Recorded run;
  run.move(20, Stage::loop);
  run.model = rundir::ModelUse{
      .layers = {{"conv1", 8, 6e9, 2e6, 1728}, {"fc\x1b", 8, 2e9, 4e6, 5130}, {"relu 8x64", 8, 0, 1e3}},
      .flops_per_step = 8e9,
      .steps = 100,
      .flops = 8e11};
  Verdict verdict = run.verdict();
  EXPECT_NEAR(verdict.flops_in_passes, 8e11 / 80, 1);
  EXPECT_NEAR(verdict.flops_in_all, 8e11 / 100, 1);
  const std::string text = verdict_text(verdict, run.time);
  EXPECT_NE(text.find("a step takes 8.00GFLOP; a lane made 10.0GFLOP/s in forward and backward passes, 8.00GFLOP/s in "
                      "all its time\n   75.0 %  conv1: 6.00GFLOP, 2.00MB, 1.73k parameters\n   25.0 %  fc?: "),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("relu"), std::string::npos) << "it takes no operations";
  verdict.peak_flops = 40e9;
  EXPECT_NE(verdict_text(verdict, run.time).find("10.0GFLOP/s (25 % of the peak)"), std::string::npos);
  const auto json = nlohmann::json::parse(verdict_json(verdict));
  EXPECT_EQ(json["model"]["layers"].size(), 3U);
  EXPECT_EQ(json["model"]["layers"][0]["parameters"], 1728);
  EXPECT_EQ(json["model"]["flops_per_step"], 8e9);
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
  EXPECT_NEAR(verdict.remedies[0].gain.expected, 3, 1e-12);
}

TEST(Verdict, ThrottlingOfOtherProcessesIsBoundedByWhatTheRunDid) {
  Recorded run;
  run.resources.throttled_seconds = 1000;  // of the whole container, while this run had its cores for 100 s
  EXPECT_EQ(share_of(run.verdict(), Limit::starved), 0);
}

TEST(Verdict, AFullyStarvedRunStillHasARemedy) {
  Recorded run;
  run.resources = {};
  run.resources.cores = 0.01;
  run.resources.throttled_seconds = 200;
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
  const Verdict verdict = judge({.time = time, .resources = {.cores = 8, .cpu_seconds = 80}, .loading = {}});
  EXPECT_NEAR(share_of(verdict, Limit::checkpoints), 0.4, 1e-12);
  EXPECT_NEAR(verdict.remedies[0].gain.expected, 0.4 / 0.6, 1e-12);
}

TEST(Verdict, LanesThatDoNotDivideTheShardsWait) {
  Recorded run;
  run.move(30, Stage::imbalance);
  spec::Job job;
  job.trainer.lanes = 2;
  job.trainer.shards = 3;
  const Verdict verdict = judge(run, &job);
  EXPECT_EQ(verdict.limits, (std::vector{Limit::compute, Limit::imbalance}));
  ASSERT_FALSE(verdict.remedies.empty());
  EXPECT_EQ(verdict.remedies[0].options, std::vector<std::string>{"trainer.shards=4"});
  EXPECT_NEAR(verdict.remedies[0].gain.expected, 0.225 / 0.775, 1e-12) << "two lanes are not twice as fast as one";
  EXPECT_NEAR(verdict.remedies[0].gain.high, 0.36 / 0.64, 1e-12);
  EXPECT_FALSE(verdict.remedies[0].keeps_result);
}

TEST(Verdict, NamesTheStageOfLoadingThatTakesMost) {
  Recorded run;
  run.move(50, Stage::data_wait);
  run.loading.samples = 1000;
  run.loading[LoadStage::read] = 2;
  run.loading.read_seconds = 3;
  run.loading[LoadStage::decode] = 45;
  Verdict verdict = run.verdict();
  EXPECT_EQ(verdict.parts[0].limit, Limit::input);
  EXPECT_EQ(verdict.parts[0].stage, "decode");
  EXPECT_EQ(verdict.parts[0].evidence,
            "the lanes waited for samples 50.0 s of 100.0 s; a sample took 48.00 ms to load, 94 % of it to decode");
  ASSERT_FALSE(verdict.remedies.empty());
  EXPECT_NE(verdict.remedies[0].what.find("sinew data pack"), std::string::npos);
  EXPECT_FALSE(verdict.remedies[0].keeps_result);  // the pixels are rounded
  run.loading.read_seconds = 200;                  // four threads that wait for a disk, while the cores rest
  run.resources.cpu_seconds = 60;
  verdict = run.verdict();
  EXPECT_EQ(verdict.parts[0].stage, "read");
  EXPECT_NE(verdict.parts[0].evidence.find("% of it to read, mostly waiting"), std::string::npos);
  ASSERT_FALSE(verdict.remedies.empty());
  EXPECT_NE(verdict.remedies[0].what.find("a faster disk"), std::string::npos);
  EXPECT_TRUE(verdict.remedies[0].keeps_result);
}

// Packed files save the time to decode, but the cores still have to do the rest.
TEST(Verdict, WithoutDecodingTheCoresStillComputeTheRest) {
  Recorded run;
  run.move(55, Stage::data_wait);
  run.loading.samples = 1000;
  run.loading[LoadStage::decode] = 30;
  run.loading[LoadStage::augment] = 25;
  EXPECT_NEAR(run.verdict().remedies[0].gain.expected, 1 / 0.7 - 1, 1e-12);
}

TEST(Verdict, ThreadsThatWaitForTheDiskMayBeMore) {
  Recorded run;
  run.move(50, Stage::data_wait);
  run.resources.cpu_seconds = 52;
  run.loading.samples = 1000;
  run.loading.read_seconds = 49;
  run.loading[LoadStage::read] = 1;
  spec::Job job;
  job.data.prefetch_threads = 2;
  const Verdict verdict = judge(run, &job);
  const auto more = std::ranges::find_if(verdict.remedies, [](const Remedy& one) { return !one.options.empty(); });
  ASSERT_NE(more, verdict.remedies.end());
  EXPECT_EQ(more->options, std::vector<std::string>{"data.prefetch.threads=4"});
  EXPECT_EQ(more->gain.low, 0);  // the disk may be at its limit
}

TEST(Verdict, ASlowWorkerIsAStraggler) {
  Recorded run;
  run.move(20, Stage::member_wait);
  run.shares = {1, 0.25, 1};
  const Verdict verdict = run.verdict();
  EXPECT_NEAR(share_of(verdict, Limit::straggler), 0.2 + 0.8 * 0.25, 1e-12);
  EXPECT_EQ(share_of(verdict, Limit::communication), 0);
  EXPECT_NE(verdict.parts[1].evidence.find("the workers' speeds are as 1.00 0.25 1.00"), std::string::npos);
  run.shares = {1, 0.9, 1};
  EXPECT_EQ(share_of(run.verdict(), Limit::straggler), 0);
  EXPECT_NEAR(share_of(run.verdict(), Limit::communication), 0.2, 1e-12);
}

TEST(Verdict, PagesThatComeBackFromTheDiskAreAMemoryLimit) {
  Recorded run;
  run.resources.cpu_seconds = 40;
  run.resources.memory_stalled_seconds = 40;
  run.resources.memory_stopped_seconds = 12;
  run.resources.major_faults = 10;  // stalls of another program
  EXPECT_EQ(share_of(run.verdict(), Limit::memory), 0);
  run.resources.major_faults = 100000;
  EXPECT_NEAR(share_of(run.verdict(), Limit::memory), 0.52, 1e-12);
  EXPECT_EQ(run.verdict().limits, (std::vector{Limit::memory, Limit::compute}));
}

TEST(Verdict, IdleCoresCouldCompute) {
  Recorded run;
  run.time = StageTimes{.lanes = 1};
  run.time[Stage::backward] = 50;
  run.resources.cores = 4;
  run.resources.cpu_seconds = 50;
  spec::Job job;
  job.trainer.lanes = 1;
  job.trainer.shards = 8;
  const Verdict verdict = judge(run, &job);
  EXPECT_EQ(to_apply(verdict, true).size(), 1);
  ASSERT_FALSE(verdict.remedies.empty());
  EXPECT_EQ(verdict.remedies[0].options, std::vector<std::string>{"trainer.lanes=4"});
  EXPECT_GE(verdict.remedies[0].gain.high, 3);
  EXPECT_LT(verdict.remedies[0].gain.low, 3);
  run.resources.cpu_seconds = 195;  // loaders use the other cores
  EXPECT_TRUE(to_apply(judge(run, &job), true).empty());
  run.resources.cpu_seconds = 50;
  job.trainer.shards = 1;  // no other lane would have work
  EXPECT_TRUE(to_apply(judge(run, &job), true).empty());
}

TEST(Verdict, WhatComputesInFloat32MayHaveAFasterPrecision) {
  Recorded run;
  spec::Job job;
  job.trainer.lanes = 2;
  job.trainer.shards = 8;
  job.trainer.precision = "fp32";
  const Verdict verdict = judge(run, &job);
  ASSERT_EQ(to_apply(verdict, true).size(), 1);
  EXPECT_EQ(verdict.remedies[0].options, std::vector<std::string>{"trainer.precision=fastest"});
  EXPECT_FALSE(verdict.remedies[0].keeps_result);
  EXPECT_EQ(verdict.remedies[0].gain.low, 0) << "fp32 may be the fastest";
  for (const char* decided : {"bf16", "fastest"}) {
    job.trainer.precision = decided;
    EXPECT_TRUE(to_apply(judge(run, &job), true).empty()) << decided;
  }
  job.trainer.precision = "fp32";
  run.move(55, Stage::data_wait);
  for (const Remedy& remedy : judge(run, &job).remedies) EXPECT_EQ(remedy.what.find("precision"), std::string::npos);
}

// More lanes also compute the evaluations that are left.
TEST(Verdict, RemediesTogetherNeverTakeMoreThanThereIs) {
  const std::vector<Remedy> remedies = {{"", {2.4, 2, 3}, true, {"trainer.lanes=4"}},
                                        {"", {1.4, 1.2, 1.6}, true, {"trainer.eval_interval=9ep"}}};
  EXPECT_NEAR(together(remedies).expected, 3.4 * 2.4 - 1, 1e-9);
  EXPECT_NEAR(together(remedies).low, 3 * 2.2 - 1, 1e-9);
}

TEST(Verdict, RareCheckpointsAndEvaluationsHelp) {
  Recorded run;
  run.move(30, Stage::checkpoint);
  run.time[Stage::forward] = 10;
  run.time[Stage::evaluation] = 30;
  spec::Job job;
  job.trainer.lanes = 2;
  job.trainer.shards = 8;
  job.checkpoint.interval = "10st";
  job.trainer.eval_interval = {2, spec::Duration::Unit::epochs};
  job.trainer.max_duration = {1000, spec::Duration::Unit::epochs};
  const std::vector<Remedy> remedies = to_apply(judge(run, &job), false);
  ASSERT_EQ(remedies.size(), 2);
  EXPECT_EQ(remedies[0].options, std::vector<std::string>{"checkpoint.interval=200st"});
  EXPECT_EQ(remedies[1].options, std::vector<std::string>{"trainer.eval_interval=18ep"});
  const Estimate both = together(remedies);
  EXPECT_NEAR(both.expected, 1 / (0.4 + 0.3 / 20 + 0.3 / 9) - 1, 1e-9);
  EXPECT_LT(both.low, both.expected);
  EXPECT_GT(both.high, both.expected);
  job.early_stopping.monitor = "val/loss";  // with fewer evaluations, the training may end later
  EXPECT_EQ(to_apply(judge(run, &job), false).size(), 1);
  EXPECT_EQ(to_apply(judge(run, &job), true).size(), 2);
  job.early_stopping.monitor.clear();
  job.objective = spec::Objective{};
  EXPECT_EQ(to_apply(judge(run, &job), false).size(), 1);
  job.trainer.max_duration = {40, spec::Duration::Unit::epochs};  // 10 evaluations are left
  EXPECT_EQ(to_apply(judge(run, &job), true)[1].options, std::vector<std::string>{"trainer.eval_interval=4ep"});
  job.trainer.eval_interval = {0.04, spec::Duration::Unit::fraction};
  EXPECT_EQ(to_apply(judge(run, &job), true)[1].options, std::vector<std::string>{"trainer.eval_interval=0.08dur"});
  job.checkpoint.interval = "never";
  EXPECT_EQ(to_apply(judge(run, &job), true).size(), 1);
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
    Record record{.time = time, .resources = resources, .loading = {}};
    record.resources.memory_stopped_seconds = random.uniform() * 20;
    record.resources.memory_stalled_seconds = random.uniform() * 50;
    record.resources.major_faults = static_cast<int64_t>(random.below(100000));
    record.loading.samples = 100;
    for (double& seconds : record.loading.cpu_seconds) seconds = random.uniform() * 50;
    for (uint64_t n = random.below(4); n > 0; --n) record.shares.push_back(random.uniform());
    spec::Job job;
    job.trainer.lanes = time.lanes;
    job.trainer.shards = 1 + random.below(9);
    job.data.prefetch_threads = random.below(4);
    const Verdict verdict = judge(record, random.below(2) == 0 ? &job : nullptr);
    double sum = 0;
    for (const Part& part : verdict.parts) {
      EXPECT_GE(part.share, 0);
      sum += part.share;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    ASSERT_FALSE(verdict.limits.empty());
    EXPECT_EQ(verdict.limits[0], verdict.parts[0].limit);
    for (const Remedy& remedy : verdict.remedies) {
      EXPECT_GE(remedy.gain.low, 0);
      EXPECT_LE(remedy.gain.low, remedy.gain.expected);
      EXPECT_LE(remedy.gain.expected, remedy.gain.high);
      EXPECT_LT(remedy.gain.high, 100);
    }
  }
}

TEST(Verdict, AReportWithoutARecordIsAnError) {
  rundir::Outcome outcome;
  EXPECT_THROW(record_of(outcome, "runs/x"), Error);
  outcome.time = StageTimes{.lanes = 6};
  outcome.resources = ResourceUse();
  EXPECT_THROW(record_of(outcome, "runs/x"), Error);
  (*outcome.time)[Stage::startup] = 1.99201 * 6;  // it ended before its first step
  EXPECT_THROW(record_of(outcome, "runs/x"), Error);
  (*outcome.time)[Stage::forward] = 1;
  EXPECT_EQ(judge(record_of(outcome, "runs/x")).limits, std::vector{Limit::compute});
}

// The report is a file, which may hold any numbers.
TEST(Verdict, NumbersThatAreNoneAreAnError) {
  const double kNone[] = {std::nan(""), -1, INFINITY};
  for (const double none : kNone) {
    rundir::Outcome outcome;
    outcome.time = Recorded().time;
    outcome.resources = ResourceUse{.throttled_seconds = none};
    EXPECT_THROW(record_of(outcome, "runs/x"), Error);
    outcome.resources = ResourceUse{.queued_seconds = none};
    EXPECT_THROW(record_of(outcome, "runs/x"), Error);
    outcome.resources = ResourceUse();
    (*outcome.time)[Stage::imbalance] = none;
    EXPECT_THROW(record_of(outcome, "runs/x"), Error);
  }
}

TEST(Verdict, ACrossValidationNamesAFold) {
  rundir::Outcome outcome;
  outcome.folds.push_back({.fold = 0, .run = "trials/00000", .status = "done", .metrics = {}});
  try {
    record_of(outcome, "runs/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint, "sinew advise runs/x/trials/00000");
  }
}

// A validation loss that falls for 20 evaluations and then rises for 40.
Recorded overfitted() {
  Recorded run;
  run.steps = 600;
  run.epochs = 30;
  run.monitored = {"val/loss", true, 0};
  for (int64_t i = 1; i <= 60; ++i) {
    const auto x = static_cast<double>(i);
    run.evaluations.push_back({10 * i, 1 + std::exp(-x / 5) + x / 100 + 0.001 * std::sin(5 * x), 0.1});
  }
  return run;
}

TEST(Verdict, ATrainingThatGotWorseCouldHaveEndedEarlier) {
  const Recorded run = overfitted();
  const auto best = std::ranges::min_element(run.evaluations, {}, &forecast::Evaluation::value);
  spec::Job job;
  const Verdict verdict = judge(run, &job);
  ASSERT_EQ(to_apply(verdict, true).size(), 1U);
  const Remedy& remedy = verdict.remedies[0];
  EXPECT_TRUE(remedy.what.starts_with("stop after epoch ")) << remedy.what;
  EXPECT_NE(remedy.what.find(": 90 % likely that no better val/loss comes; saves "), std::string::npos) << remedy.what;
  EXPECT_FALSE(remedy.keeps_result);
  ASSERT_EQ(remedy.options.size(), 3U);
  EXPECT_EQ(remedy.options[0], "early_stopping.monitor=val/loss");
  EXPECT_EQ(remedy.options[1], "early_stopping.mode=min");
  ASSERT_TRUE(remedy.options[2].starts_with("early_stopping.patience="));
  const int64_t patience = std::stoll(remedy.options[2].substr(remedy.options[2].find('=') + 1));
  const double done = static_cast<double>(best->step + 10 * patience) / 600;
  EXPECT_NEAR(remedy.gain.expected, 1 / done - 1, 1e-9) << "patience ends it that many evaluations after the best one";
  EXPECT_NE(verdict_text(verdict, run.time).find("the best model stays the same"), std::string::npos);
  EXPECT_NE(verdict_json(verdict).find("\"effect\": \"the best model stays the same"), std::string::npos);
  job.early_stopping.monitor = "val/loss";
  EXPECT_TRUE(to_apply(judge(run, &job), true).empty()) << "it has a patience";
}

TEST(Verdict, ATrainingThatStillGotBetterIsNotCutShort) {
  Recorded run = overfitted();
  for (forecast::Evaluation& one : run.evaluations) one.value = 1 + 50 / static_cast<double>(one.step);
  const spec::Job job;
  EXPECT_TRUE(to_apply(judge(run, &job), true).empty());
  run.evaluations.clear();
  EXPECT_TRUE(to_apply(judge(run, &job), true).empty());
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
      "compute-bound (forward), 45 %: the model and the optimizer took 45.0 s of 100.0 s\n"
      "\n"
      "time of 2 lanes in 50.0 s\n"
      "  data_wait     55.0 %       55.00 s\n"
      "  forward       40.0 %       40.00 s\n"
      "  backward       5.0 %        5.00 s\n"
      "\n"
      "what can help\n"
      "  read samples without waiting: a faster disk, or files that are in memory: 122 % faster (78 % to 161 %); the "
      "model stays the same\n");
}

}  // namespace
}  // namespace sinew::advise
