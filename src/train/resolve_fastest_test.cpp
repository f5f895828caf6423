// Tests that a run measures before its first step, and that this changes nothing but the two options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expected_error.h"
#include "base/proc.h"
#include "train/fastest_trial.h"
#include "train/small_run.h"

namespace sinew::train {
namespace {

using testing::HasSubstr;

class FastestTrialsOfImages : public testing::Test {
 protected:
  FastestTrialsOfImages() : data_(data::Task::classification, {3, 8, 8}, 4, 256, 64) {
    job_ = test_job("cnn", 2);
    job_.model.channels = {4, 4};
    job_.trainer.max_duration = {1e6, spec::Duration::Unit::epochs};
  }
  void SetUp() override {
    if (process_row(::getpid()).threads != 1) GTEST_SKIP() << "an earlier test of this process has started threads";
  }
  FastestTrials tried(const std::atomic<int>* stop = nullptr) {
    spec::Job job = job_;
    job.trainer.precision = job.trainer.memory_format = "fastest";
    const Machine machine{.cores = 2};
    return try_arithmetics(
        {.job = resolve(job, data_.info(), machine).job, .dataset = &data_, .most_seconds = 600, .stop_signals = stop},
        arithmetics_of(job, data_.info(), machine));
  }

  SyntheticData data_;
  spec::Job job_;
};

TEST_F(FastestTrialsOfImages, EachArithmeticTrainsTheSameSteps) {
  const FastestTrials found = tried();
  EXPECT_EQ(found.end, ChildEnd::measured);
  ASSERT_EQ(found.trials.size(), 4u);
  for (const ArithmeticTrial& trial : found.trials) {
    EXPECT_EQ(trial.error, "");
    EXPECT_GE(trial.rounds.size(), kFewestRounds);
    for (const double seconds : trial.rounds) EXPECT_GT(seconds, 0);
    EXPECT_NEAR(trial.loss, found.trials.front().loss, 0.05) << trial.how.precision << trial.how.memory_format;
  }
  EXPECT_NE(found.trials[0].loss, found.trials[2].loss) << "bf16 was not used";
  EXPECT_EQ(process_row(::getpid()).threads, 1) << "this process has computed nothing";
}

TEST_F(FastestTrialsOfImages, ATrainingOfAFewStepsIsNotMeasured) {
  job_.trainer.max_duration = {1, spec::Duration::Unit::steps};
  const FastestTrials found = tried();
  EXPECT_EQ(found.end, ChildEnd::measured);
  EXPECT_FALSE(choose_arithmetic(found.trials));
}

TEST_F(FastestTrialsOfImages, AJobThatCannotBeTrainedSaysWhy) {
  job_.model.freeze = {"no.such.*"};
  const FastestTrials found = tried();
  EXPECT_EQ(found.end, ChildEnd::measured);
  EXPECT_THAT(found.trials.front().error, HasSubstr("no.such.*"));
  EXPECT_FALSE(choose_arithmetic(found.trials));
}

TEST_F(FastestTrialsOfImages, AStopEndsThem) {
  const std::atomic<int> stop{1};
  EXPECT_EQ(tried(&stop).end, ChildEnd::stopped);
}

class FastestRun : public SmallRun {
 protected:
  FastestRun() {
    ledger_ = true;
    job_.trainer.max_duration = {40, spec::Duration::Unit::steps};
  }
  spec::TrainerOptions decided() const {
    const std::string file = run_directory_ + "/resolved.yaml";
    return spec::read_job(read_text(system_disk(), file), file).job.trainer;
  }
  std::string resolved_text() const { return read_text(system_disk(), run_directory_ + "/resolved.yaml"); }
  std::vector<std::string> digests() const {
    std::vector<std::string> all;
    for (const auto& line : lines_of("ledger.jsonl")) all.push_back(line.at("digest").get<std::string>());
    return all;
  }
};

TEST_F(FastestRun, HasTheBitsOfTheRunThatWasGivenTheSame) {
  job_.trainer.precision = job_.trainer.memory_format = "fastest";
  EXPECT_EQ(run_in("measured").exit_code, 0);
  const auto chosen = decided();
  EXPECT_THAT(chosen.precision, testing::AnyOf("fp32", "bf16"));
  const auto measured = digests();
  EXPECT_EQ(measured.size(), 40u);
  job_.trainer.precision = chosen.precision;
  job_.trainer.memory_format = "contiguous";
  EXPECT_EQ(run_in("given").exit_code, 0);
  EXPECT_EQ(digests(), measured);
}

TEST_F(FastestRun, KeepsTheFiguresInResolvedYaml) {
  if (process_row(::getpid()).threads != 1) GTEST_SKIP() << "an earlier test of this process has started threads";
  job_.trainer.precision = "fastest";
  job_.trainer.max_duration = {1e6, spec::Duration::Unit::epochs};
  run_directory_ = folder_ + "/measured";
  std::filesystem::create_directories(run_directory_);
  TickingClock clock(/*signal_at=*/3);  // long after the decision, at which nobody has looked at this clock
  EXPECT_EQ(run_for(clock).exit_code, kResumable);
  EXPECT_THAT(resolved_text(), HasSubstr("a step when the run began: fp32 "));
  EXPECT_THAT(resolved_text(), HasSubstr(" ms, bf16 "));
}

// A run decides once. bf16 was given here, so a measurement could choose another precision.
TEST_F(FastestRun, AResumedRunDoesNotMeasureAgain) {
  job_.trainer.precision = "bf16";
  run_in("run");
  const std::string before = resolved_text();
  std::filesystem::remove(run_directory_ + "/report.json");
  job_.trainer.precision = job_.trainer.memory_format = "fastest";
  EXPECT_EQ(run_in("run", true).exit_code, 0);
  EXPECT_EQ(resolved_text(), before);
}

TEST_F(FastestRun, AMemberTakesWhatTheRunHasDecided) {
  join_ = [](const Identity& identity) {
    EXPECT_EQ(nlohmann::json::parse(identity.job).at("trainer.precision"), "bf16");
    return std::make_unique<Alone>();
  };
  job_.trainer.precision = "fastest";
  EXPECT_EQ(code_of([&] { run_in("undecided"); }), "FASTEST_UNDECIDED");
  job_.trainer.precision = "bf16";
  RunOptions options;
  options.job = job_;
  options.run_directory = run_directory_ = folder_ + "/decided";
  std::filesystem::create_directories(run_directory_);
  TickingClock clock;
  EXPECT_EQ(decide(options, *disk_, clock), 0);
  EXPECT_EQ(decided().precision, "bf16");
  EXPECT_FALSE(std::filesystem::exists(run_directory_ + "/metrics.jsonl"));
  job_.trainer.precision = "fastest";
  EXPECT_EQ(run_for(clock).exit_code, 0);
}

TEST_F(FastestRun, ADecisionThatFailsLeavesAReport) {
  RunOptions options;
  options.job = job_;
  options.job.trainer.precision = "fastest";
  options.job.data.train.path = folder_ + "/no-such.csv";
  options.run_directory = run_directory_ = folder_ + "/failed";
  std::filesystem::create_directories(run_directory_);
  TickingClock clock;
  EXPECT_NE(code_of([&] { decide(options, *disk_, clock); }), "NO_ERROR");
  EXPECT_TRUE(std::filesystem::exists(run_directory_ + "/report.json"));
  EXPECT_FALSE(rundir::is_run(run_directory_));
}

TEST_F(FastestRun, AStopBeforeTheDecisionLeavesNoRun) {
  if (process_row(::getpid()).threads != 1) GTEST_SKIP() << "an earlier test of this process has started threads";
  job_.trainer.precision = "fastest";
  run_directory_ = folder_ + "/stopped";
  std::filesystem::create_directories(run_directory_);
  TickingClock clock;
  clock.signals = 1;
  EXPECT_EQ(run_for(clock).exit_code, kResumable);
  EXPECT_FALSE(rundir::is_run(run_directory_));
}

}  // namespace
}  // namespace sinew::train
