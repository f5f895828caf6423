#include "train/memory_trial.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/clock.h"
#include "base/expected_error.h"
#include "base/proc.h"
#include "base/resident_memory.h"
#include "train/resolve.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Images on which a shard of many samples needs much more memory than one of a few: what two shapes need differs by
// more than threads and allocators take at random.
class MemoryTrials : public testing::Test {
 protected:
  MemoryTrials() : data_(data::Task::classification, {3, 48, 48}, 4, 512, 64) {
    job_ = test_job("cnn");
    job_.model.channels = {48, 8};
    job_.trainer.batch_size = 512;
    job_.trainer.precision = "fp32";
    job_.trainer.shards.reset();
    job_.trainer.lanes.reset();
  }
  void SetUp() override {
    if (process_row(::getpid()).threads != 1) GTEST_SKIP() << "an earlier test of this process has started threads";
  }
  Resolved resolved(int64_t cores = 2) const { return resolve(job_, data_.info(), {.cores = cores}); }
  TrialResult tried(StepShape shape, int64_t most = int64_t{64} << 30) const {
    const TrialResult result = try_memory(options_for(shape, most));
    EXPECT_EQ(result.end, TrialResult::End::measured);
    return result;
  }
  TrialOptions options_for(StepShape shape, int64_t most = int64_t{64} << 30) const {
    return {.job = resolved().job,
            .dataset = &data_,
            .shape = shape,
            .most_bytes = most,
            .ends_at = system_clock().monotonic_seconds() + 600};
  }
  // What fits steps of the first shape, but not of the second one.
  int64_t budget_between(StepShape fits, StepShape does_not) const {
    const TrialResult small = tried(fits), usual = tried(does_not);
    const int64_t needed = (small.trial.bytes + usual.trial.bytes) / 2 + usual.file_bytes + resident_memory().files;
    return needed + std::max(12 * kMiB, needed / 31 + 1);  // what stays free, see resolve_memory.cpp
  }

  SyntheticData data_;
  spec::Job job_;
};

TEST_F(MemoryTrials, SmallerShardsAndFewerLanesNeedLess) {
  const int64_t held = resident_memory().held;
  const MemoryTrial usual = tried({2, 8}).trial, small = tried({2, 64}).trial, one = tried({1, 8}).trial;
  for (const MemoryTrial* trial : {&usual, &small, &one}) {
    EXPECT_FALSE(trial->ended_early);
    EXPECT_EQ(trial->error, "");
  }
  EXPECT_GT(usual.bytes, small.bytes + 30 * kMiB);
  EXPECT_GT(usual.bytes, one.bytes + 15 * kMiB);
  EXPECT_LT(resident_memory().held, held + 16 * kMiB);  // this process has computed nothing
}

TEST_F(MemoryTrials, ATrialThatNeedsMoreThanThereIsEndsEarly) {
  const TrialResult result = tried({2, 1}, resident_memory().held + 16 * kMiB);
  EXPECT_TRUE(result.trial.ended_early) << result.trial.bytes << ' ' << result.trial.error;
}

TEST_F(MemoryTrials, AJobThatCannotBeTrainedSaysWhy) {
  TrialOptions options = options_for({1, 8});
  options.job.model.freeze = {"no.such.*"};
  const TrialResult result = try_memory(options);
  EXPECT_EQ(result.end, TrialResult::End::measured);
  EXPECT_FALSE(result.trial.ended_early);
  EXPECT_NE(result.trial.error, "");
}

TEST_F(MemoryTrials, NobodyWaitsAfterAStop) {
  const std::atomic<int> stop{1};
  TrialOptions options = options_for({1, 8});
  options.stop_signals = &stop;
  EXPECT_EQ(try_memory(options).end, TrialResult::End::stopped);
  job_.budget.memory = 64 * kMiB;
  Resolved decided = resolved();
  EXPECT_FALSE(fit_to_memory(decided, job_, data_, {.stop_signals = &stop}));
  EXPECT_EQ(decided.job, resolved().job);
}

TEST_F(MemoryTrials, NobodyWaitsAfterTheTime) {
  TrialOptions options = options_for({1, 8});
  options.ends_at = system_clock().monotonic_seconds() - 1;
  EXPECT_EQ(try_memory(options).end, TrialResult::End::too_long);
  job_.budget.memory = 64 * kMiB;
  EXPECT_ERROR(error_of([&] {
                 Resolved decided = resolved();
                 fit_to_memory(decided, job_, data_, {.budget_seconds = 1e-6});
               }),
               "MEMORY_NOT_MEASURED", "on 1 lane need was not measured");
}

TEST_F(MemoryTrials, TheUserLearnsOnceThatMemoryIsMeasured) {
  job_.budget.memory = budget_between({2, 64}, {2, 8});
  Resolved decided = resolved();
  int lines = 0;
  EXPECT_TRUE(fit_to_memory(decided, job_, data_, {.say = [&](const std::string&) { ++lines; }}));
  EXPECT_EQ(lines, 1);
}

TEST_F(MemoryTrials, WithoutABudgetNothingIsTriedAndNothingChanges) {
  Resolved decided = resolved();
  const auto faults_of_children = [] {
    rusage used{};
    getrusage(RUSAGE_CHILDREN, &used);
    return used.ru_minflt;
  };
  const int64_t before = faults_of_children();
  fit_to_memory(decided, job_, data_);
  EXPECT_EQ(faults_of_children(), before);  // there was no other process
  EXPECT_EQ(decided.job, resolved().job);
  EXPECT_EQ(decided.reasons, resolved().reasons);
  job_.budget.memory = int64_t{1} << 40;  // far more than any such training needs
  fit_to_memory(decided, job_, data_);
  EXPECT_EQ(faults_of_children(), before);
}

TEST_F(MemoryTrials, ABudgetGivesMoreShards) {
  job_.budget.memory = budget_between({2, 64}, {2, 8});
  Resolved decided = resolved();
  fit_to_memory(decided, job_, data_);
  const bool fewer_lanes = *decided.job.trainer.lanes < 2;
  EXPECT_TRUE(fewer_lanes || *decided.job.trainer.shards > 8);
  EXPECT_EQ(decided.written.trainer.shards, decided.job.trainer.shards);
  EXPECT_FALSE(decided.written.trainer.lanes);
  EXPECT_NE(decided.reasons.at(fewer_lanes ? "trainer.lanes" : "trainer.shards").find("budget.memory allows"),
            std::string::npos);
}

TEST_F(MemoryTrials, GivenLanesStayAndTheShardsGetSmaller) {
  job_.budget.memory = budget_between({2, 64}, {2, 8});
  job_.trainer.lanes = 2;
  Resolved decided = resolved();
  fit_to_memory(decided, job_, data_);
  EXPECT_EQ(*decided.job.trainer.lanes, 2);
  EXPECT_GT(*decided.job.trainer.shards, 8);
}

TEST_F(MemoryTrials, ShardsThatOthersDecideTooStay) {
  job_.budget.memory = budget_between({1, 8}, {2, 8});
  Resolved decided = resolved();
  fit_to_memory(decided, job_, data_, {.may_change_shards = false});
  EXPECT_EQ(*decided.job.trainer.shards, 8);
  EXPECT_EQ(*decided.job.trainer.lanes, 1);
}

TEST_F(MemoryTrials, ABudgetThatCannotDoIsAnError) {
  job_.budget.memory = 64 * kMiB;
  EXPECT_ERROR(error_of([&] {
                 Resolved decided = resolved();
                 fit_to_memory(decided, job_, data_);
               }),
               "MEMORY_TOO_SMALL", "budget.memory allows 64.0 MiB");
}

}  // namespace
}  // namespace sinew::train
