#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "advise/advise.h"
#include "base/expected_error.h"

namespace sinew::advise {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kGiga = 1e9;

PlannedJob a_planned_job() {
  return {.name = "job",
          .model = "mlp",
          .parameters = 1'000'000,
          .trained_parameters = 1'000'000,
          .train_samples = 100'000,
          .val_samples = 1000,
          .batch_size = 100,
          .steps_per_epoch = 1000,
          .steps = 10'000,
          .evaluate_every = 1000,
          .shards = 8,
          .inputs = 20,
          .outputs = 10};
}

// 2 lanes of this machine compute 40 GFLOP/s of 100, so a step is bound by computing.
MeasuredRun a_measured_run() {
  return {.steps = 90,
          .lanes = 2,
          .cores = 2,
          .seconds = 10,
          .startup_seconds = 1,
          .step_seconds = 0.1,
          .evaluation_seconds = 0.5,
          .save_seconds = 0.1,
          .end_seconds = 0.2,
          .wait_seconds = 0.001,
          .step_flops = 4e9,
          .step_bytes = 1e8,
          .step_calls = 800,
          .peak_flops = 100 * kGiga,
          .bandwidth = 20 * kGiga,
          .call_seconds = 1e-6,
          .load_seconds = 0.0005,
          .program_memory = 100 << 20,
          .data_memory = 20 << 20,
          .parameter_memory = 4'000'000,
          .optimizer_memory = 8'000'000,
          .peak_memory = 400 << 20};
}

// A machine of the table that is as good as this one: the table has what a data sheet says, of which a product reaches
// 80 % and a copy 75 %.
MachineType like_this_one() {
  return {.name = "here",
          .provider = "P",
          .region = "r",
          .kind = MachineType::Kind::cpu,
          .cores = 2,
          .memory_gib = 16,
          .peak_tflops = {{"fp32", 0.1 / 0.8}},
          .memory_bandwidth_gbs = 20 / 0.75,
          .on_demand = 3.6,
          .source = "s"};
}

MachineType a_gpu(double accelerators = 1) {
  return {.name = "gpu",
          .provider = "P",
          .region = "r",
          .kind = MachineType::Kind::gpu,
          .cores = 4,
          .memory_gib = 16,
          .accelerators = accelerators,
          .accelerator_memory_gib = 24,
          .peak_tflops = {{"fp32", 35}},
          .memory_bandwidth_gbs = 600,
          .spot = 0.36,
          .source = "s"};
}

Elsewhere on(const MachineType& machine, const MeasuredRun& run = a_measured_run(), PlannedJob job = a_planned_job()) {
  return elsewhere(plan(job, run), {"2026-01-02", "USD", {machine}}).at(0);
}

TEST(ElsewhereTest, ThisMachineIsAPointOfTheModel) {
  const Plan here = plan(a_planned_job(), a_measured_run());
  const Elsewhere there = on(like_this_one());
  EXPECT_NEAR(there.step_seconds.expected, 0.1, 1e-9);
  EXPECT_NEAR(there.seconds.expected, here.seconds.expected, 1e-6);
  EXPECT_LT(there.seconds.low, here.seconds.expected);
  EXPECT_GT(there.seconds.high, here.seconds.expected);
  EXPECT_EQ(there.limit, "compute");
  EXPECT_EQ(there.why_not, "");
}

TEST(ElsewhereTest, AStepOfOverheadOnlyIsAlsoItself) {
  MeasuredRun run = a_measured_run();
  run.step_calls = 1e6;  // more than the step could have called
  EXPECT_NEAR(on(like_this_one(), run).step_seconds.expected, 0.1, 1e-9);
  EXPECT_EQ(on(like_this_one(), run).limit, "calls");
}

TEST(ElsewhereTest, ABetterMachineIsNeverSlower) {
  for (const bool gpu : {false, true}) {
    double before = 1e9;
    for (const double factor : {0.1, 0.5, 1.0, 2.0, 10.0, 1000.0}) {
      MachineType machine = gpu ? a_gpu() : like_this_one();
      for (auto& [precision, peak] : machine.peak_tflops) peak *= factor;
      const double compute = on(machine).step_seconds.expected;
      machine.memory_bandwidth_gbs *= factor;
      const double both = on(machine).step_seconds.expected;
      EXPECT_LE(both, compute + 1e-12) << factor;
      EXPECT_LE(both, before + 1e-12) << factor;
      before = both;
    }
    EXPECT_GT(before, 0) << "overhead stays";
  }
}

TEST(ElsewhereTest, MoreCoresHelpAsFarAsThereAreShards) {
  MachineType machine = like_this_one();
  const auto with = [&](double cores) {
    machine.cores = cores;
    machine.peak_tflops = {{"fp32", 0.0625 * cores}};
    machine.memory_bandwidth_gbs = 13 * cores;
    return on(machine).step_seconds.expected;
  };
  EXPECT_LT(with(8), 0.3 * with(2));
  EXPECT_NEAR(with(64), with(8), 0.001) << "8 shards keep 8 lanes busy";
}

TEST(ElsewhereTest, AMemoryBoundStepFollowsTheBandwidth) {
  MeasuredRun run = a_measured_run();
  run.step_flops = 1e6;
  run.step_bytes = 1e9;
  MachineType machine = like_this_one();
  EXPECT_EQ(on(machine, run).limit, "memory");
  machine.peak_tflops = {{"fp32", 100}};
  EXPECT_NEAR(on(machine, run).step_seconds.expected, 0.1, 0.001) << "operations are not what it waits for";
  machine.memory_bandwidth_gbs *= 2;
  EXPECT_NEAR(on(machine, run).step_seconds.expected, 0.05, 0.002);
}

TEST(ElsewhereTest, SamplesCannotBeReadFasterThanTheCoresDo) {
  MeasuredRun run = a_measured_run();
  run.load_seconds = 0.19;  // two cores read the samples of a step in 0.095 s, and a step takes 0.1 s
  const Elsewhere there = on(a_gpu(), run);
  EXPECT_DOUBLE_EQ(there.step_seconds.expected, 0.19 / 4);
  EXPECT_EQ(there.limit, "data");
}

TEST(ElsewhereTest, AnAcceleratorHasAFactorOfTwoAndAProcessorThirtyPercent) {
  const Estimate gpu = on(a_gpu()).step_seconds, cpu = on(like_this_one()).step_seconds;
  EXPECT_NEAR(gpu.high / gpu.expected, 2, 1e-9);
  EXPECT_NEAR(gpu.expected / gpu.low, 2, 1e-9);
  EXPECT_NEAR(cpu.high / cpu.expected, 1.3, 1e-9);
  EXPECT_LT(on(a_gpu(8)).step_seconds.expected, gpu.expected);
  EXPECT_GT(on(a_gpu(8)).step_seconds.expected, gpu.expected / 8) << "they also wait for each other";
}

TEST(ElsewhereTest, WhatDoesNotFitIsNamed) {
  MeasuredRun run = a_measured_run();
  run.peak_memory = int64_t{20} << 30;
  EXPECT_THAT(on(like_this_one(), run).why_not, HasSubstr("of memory, has 16.0 GiB"));
  EXPECT_EQ(on(a_gpu(), run).why_not, "") << "24 GiB on the accelerator are enough";
  run.peak_memory = int64_t{30} << 30;
  EXPECT_THAT(on(a_gpu(), run).why_not, HasSubstr("on the accelerator, has 24.0 GiB"));
  run.data_memory = int64_t{17} << 30;
  EXPECT_THAT(on(a_gpu(), run).why_not, HasSubstr("of memory, has 16.0 GiB")) << "the data stay in the host";
  MachineType bf16_only = a_gpu();
  bf16_only.peak_tflops = {{"bf16", 100}};
  EXPECT_EQ(on(bf16_only).why_not, "no figure for fp32");
}

TEST(ElsewhereTest, APrecisionThatIsAutoIsChosenForEachMachine) {
  PlannedJob job = a_planned_job();
  job.precision_is_auto = true;
  for (const char* here : {"fp32", "bf16"}) {
    job.precision = here;
    EXPECT_EQ(on(like_this_one(), a_measured_run(), job).why_not, "") << "it has no figure for bf16";
    MachineType bf16_only = a_gpu();
    bf16_only.peak_tflops = {{"bf16", 100}};
    EXPECT_EQ(on(bf16_only, a_measured_run(), job).why_not, "");
    MachineType both = bf16_only;
    both.peak_tflops["fp32"] = 1;
    EXPECT_EQ(on(both, a_measured_run(), job).step_seconds.expected,
              on(bf16_only, a_measured_run(), job).step_seconds.expected);
  }
}

TEST(ElsewhereTest, MoreLanesNeedMoreMemory) {
  MeasuredRun run = a_measured_run();
  run.peak_memory = int64_t{8} << 30;
  MachineType machine = like_this_one();
  EXPECT_EQ(on(machine, run).why_not, "");
  machine.cores = 8;
  EXPECT_THAT(on(machine, run).why_not, HasSubstr("of memory, has 16.0 GiB"));
  machine.cores = 1;
  machine.memory_gib = 6;
  EXPECT_EQ(on(machine, run).why_not, "") << "one lane needs about half";
}

TEST(ElsewhereTest, TheCheapestComesFirstAndWhatDoesNotFitLast) {
  MachineType cheap = like_this_one(), dear = like_this_one(), unknown = like_this_one(), small = like_this_one();
  dear.name = "dear";
  dear.on_demand = 100;
  unknown.name = "unknown";
  unknown.on_demand.reset();
  small.name = "small";
  small.memory_gib = 0.001;
  const auto all = elsewhere(plan(a_planned_job(), a_measured_run()), {"d", "USD", {small, unknown, dear, cheap}});
  std::vector<std::string> names;
  for (const Elsewhere& one : all) names.push_back(one.machine.name);
  EXPECT_THAT(names, testing::ElementsAre("here", "dear", "unknown", "small"));
}

TEST(ElsewhereTest, ATimeEndsTheTrainingEverywhereAndTheStepsDiffer) {
  PlannedJob job = a_planned_job();
  job.steps.reset();
  job.max_seconds = 600;
  const Elsewhere same = on(like_this_one(), a_measured_run(), job), gpu = on(a_gpu(), a_measured_run(), job);
  EXPECT_NEAR(same.seconds.expected, 600, 2);
  EXPECT_NEAR(same.steps.expected, plan(job, a_measured_run()).steps.expected / 0.1, 2);
  EXPECT_GT(gpu.steps.expected, same.steps.expected);
  EXPECT_LT(gpu.steps.low, gpu.steps.high);
}

PlanQuestions with_machines(PlanQuestions questions = {}) {
  MachineType small = like_this_one();
  small.name = "small";
  small.memory_gib = 0.001;
  questions.machines = MachineTable{"2026-01-02", "USD", {like_this_one(), a_gpu(), small}};
  return questions;
}

TEST(ElsewhereTest, CostsAreTimesTimesPrices) {
  const Plan found = plan(a_planned_job(), a_measured_run());
  const auto json = nlohmann::json::parse(plan_json(found, with_machines({.spend = 0.5, .retrain_seconds = 86400})));
  ASSERT_EQ(json.at("machines").size(), 3U);
  std::map<std::string, nlohmann::json> by_name;
  for (const auto& one : json.at("machines")) by_name[one.at("name")] = one;
  const auto& here = by_name.at("here");
  EXPECT_NEAR(here.at("cost_on_demand").at("expected").get<double>(),
              here.at("seconds").at("expected").get<double>() * 3.6 / 3600, 1e-9);
  EXPECT_FALSE(here.contains("cost_spot")) << "a price that is not known is not made up";
  EXPECT_TRUE(by_name.at("gpu").contains("cost_spot"));
  EXPECT_NEAR(here.at("cost_a_month").at("expected").get<double>(),
              30.44 * here.at("cost_on_demand").at("expected").get<double>(), 1e-9);
  EXPECT_NEAR(here.at("part_for_spend").at("expected").get<double>(),
              0.5 / here.at("cost_on_demand").at("expected").get<double>(), 1e-9);
  EXPECT_EQ(by_name.at("gpu").at("part_for_spend").at("high"), 1) << "there it is enough";
  EXPECT_FALSE(by_name.at("small").at("fits"));
  EXPECT_EQ(json.at("prices").at("date"), "2026-01-02");
  EXPECT_FALSE(json.at("assumptions").empty());
}

TEST(ElsewhereTest, TheTextSaysWhatItAssumes) {
  const Plan found = plan(a_planned_job(), a_measured_run());
  const std::string text = plan_text(found, with_machines({.spend = 20, .retrain_seconds = 86400}));
  for (const char* part : {"MACHINE", "P here", "P gpu", "no price", "left out: needs", "2026-01-02", "FOR 20.00",
                           "A MONTH", "assumed: ", "note: TPU: ", "+-30 %"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(plan_text(found, {}), Not(HasSubstr("MACHINE")));
}

TEST(PlanQuestionsTest, MoneyAndMonthsOfThisMachine) {
  const Plan found = plan(a_planned_job(), a_measured_run());
  const auto json =
      nlohmann::json::parse(plan_json(found, {.price = 3600, .spend = 500, .retrain_seconds = 7 * 86400}));
  EXPECT_NEAR(json.at("part_for_spend").at("expected").get<double>(), 500 / found.seconds.expected, 1e-9);
  EXPECT_NEAR(json.at("steps_for_spend").at("expected").get<double>(), steps_within(found, 500).expected, 1e-9);
  EXPECT_NEAR(json.at("cost_a_month").at("expected").get<double>(), found.seconds.expected * 30.44 / 7, 1e-6);
  EXPECT_THAT(plan_text(found, {.retrain_seconds = 600}), HasSubstr("takes longer than the 10m00s until the next one"));
}

TEST(PlanQuestionsTest, IntervalsHaveTheirUsualNames) {
  EXPECT_EQ(retraining_interval("nightly"), 86400);
  EXPECT_EQ(retraining_interval("weekly"), 7 * 86400);
  EXPECT_EQ(retraining_interval("6h"), 6 * 3600);
  EXPECT_ERROR(error_of([] { retraining_interval("often"); }), "OPTION_INVALID", "--retrain");
}

TEST(PlanQuestionsTest, TheAdviceFollowsTheTimes) {
  const auto advice = [](double step_seconds, double steps, double samples) {
    PlannedJob job = a_planned_job();
    job.steps = static_cast<int64_t>(steps);
    MeasuredRun run = a_measured_run();
    run.step_seconds = step_seconds;
    return retraining_advice(plan(job, run), samples);
  };
  EXPECT_THAT(advice(0.1, 10'000, 5000), HasSubstr("batch: train anew on all data each night"));
  EXPECT_THAT(advice(0.1, 10'000, 10), HasSubstr("each week"));
  EXPECT_THAT(advice(1, 100'000, 5000), testing::StartsWith("mini-batch: "));
  EXPECT_THAT(advice(1, 100'000, 5'000'000), testing::StartsWith("streaming: "));
  EXPECT_THAT(advice(1, 100'000, 50'000'000), testing::StartsWith("too much for this machine"));
}

TEST(ModelNotes, EveryBuiltInModelHasItsOwn) {
  for (const char* model : {"linear", "svm", "mlp", "tabular", "cnn", "resnet18", "resnet34", "resnet50", "lstm"}) {
    PlannedJob job = a_planned_job();
    job.model = model;
    EXPECT_THAT(complexity(job), HasSubstr("n = 100k samples")) << model;
    EXPECT_GE(deployment_notes(model).size(), 2U) << model;
  }
  PlannedJob text = a_planned_job();
  text.model = "lstm";
  text.length = 64;
  EXPECT_THAT(complexity(text), HasSubstr("T = 64"));
  PlannedJob own = a_planned_job();
  own.model = "program";
  EXPECT_EQ(complexity(own), "");
  EXPECT_THAT(deployment_notes("program").at(0), HasSubstr("sinew inspect"));
}

}  // namespace
}  // namespace sinew::advise
