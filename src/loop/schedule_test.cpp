// Tests the number of steps of a training whose batch size changes, and the schedules.
#include "loop/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "data/data.h"

namespace sinew::loop {
namespace {

spec::Job job_of(int64_t batch_size, spec::Duration duration) {
  spec::Job job;
  job.trainer.batch_size = batch_size;
  job.trainer.max_duration = duration;
  return job;
}

using Unit = spec::Duration::Unit;

TEST(BatchSizes, StagesComeInOrderAndThenTheBatchSize) {
  spec::Job job = job_of(64, {10, Unit::epochs});
  job.trainer.batch_size_ramp = {16, 32};
  job.trainer.batch_size_ramp_interval = {2, Unit::epochs};
  const BatchSizes sizes(job.trainer, 640, 1);  // 10 steps of 64 in an epoch: stages of 20 steps
  EXPECT_EQ(sizes.at(0), 16);
  EXPECT_EQ(sizes.at(19), 16);
  EXPECT_EQ(sizes.at(20), 32);
  EXPECT_EQ(sizes.at(39), 32);
  EXPECT_EQ(sizes.at(40), 64);
  EXPECT_EQ(sizes.at(1'000'000), 64);
}

TEST(CountSteps, EqualsTotalStepsIfTheBatchSizeNeverChanges) {
  for (const int64_t size : {1, 7, 64, 107}) {
    for (const bool drop_last : {false, true}) {
      for (const spec::Duration duration : {spec::Duration{3, Unit::epochs}, {1, Unit::epochs}, {17, Unit::steps}}) {
        spec::Job job = job_of(size, duration);
        job.trainer.drop_last = drop_last;
        const Lengths lengths = lengths_of(job, 107, 5);
        EXPECT_EQ(count_steps(job.trainer, lengths, [&](int64_t) { return size; }), lengths.total_steps)
            << size << ' ' << drop_last << ' ' << to_string(duration);
      }
    }
  }
}

TEST(CountSteps, EndsAfterWholeEpochsIfTheBatchSizeGrows) {
  spec::Job job = job_of(40, {5, Unit::epochs});
  job.trainer.batch_size_ramp = {8, 20};
  job.trainer.batch_size_ramp_interval = {7, Unit::steps};
  const Lengths lengths = lengths_of(job, 107, 1);
  const BatchSizes sizes(job.trainer, 107, 1);
  data::Cursor cursor;
  for (int64_t step = 0; step < lengths.total_steps; ++step) {
    ASSERT_LT(cursor.epoch, 5) << step;
    cursor = data::after(data::step_range(cursor, 107, sizes.at(step), false), 107, sizes.at(step), false);
  }
  EXPECT_EQ(cursor.epoch, 5);
  EXPECT_EQ(cursor.offset, 0);
}

TEST(CountSteps, SamplesAndTokensAreNeverExceeded) {
  for (const Unit unit : {Unit::samples, Unit::tokens}) {
    spec::Job job = job_of(40, {1000, unit});
    job.trainer.batch_size_ramp = {8};
    job.trainer.batch_size_ramp_interval = {3, Unit::steps};
    const int64_t tokens = unit == Unit::tokens ? 4 : 1;
    const auto steps =
        count_steps(job.trainer, lengths_of(job, 1 << 20, tokens), [](int64_t step) { return step < 3 ? 8 : 40; });
    EXPECT_EQ(steps, 3 + (1000 / tokens - 24) / 40);
  }
}

TEST(Schedule, Coslog4HasFourWavesAndEachIsTwiceAsLong) {
  Lengths lengths;
  lengths.total_steps = 1500;
  const Schedule schedule({.name = "coslog4"}, lengths);
  for (const int64_t trough : {0, 100, 300, 700}) EXPECT_NEAR(schedule.factor(trough), 0, 1e-12) << trough;
  EXPECT_GT(schedule.factor(20), 0.1);
  for (const double wave : {0.5, 1.5, 2.5, 3.5}) {  // the peaks
    const auto peak = static_cast<int64_t>(std::round(100 * (std::exp2(wave) - 1)));
    EXPECT_NEAR(schedule.factor(peak), 1, 1e-3) << peak;  // the peaks lie between two steps
  }
  lengths.total_steps.reset();
  EXPECT_NEAR(Schedule({.name = "coslog4"}, lengths).factor(100), 0, 1e-9) << "still at its beginning";
}

TEST(Schedule, WithoutALastStepItStaysAtItsBeginning) {
  Lengths lengths{.train_size = 100, .batch_size = 10, .steps_per_epoch = 10};
  for (const auto& [name, first] :
       {std::pair{"cosine", 1.0}, std::pair{"linear", 1.0}, std::pair{"one_cycle", 1 / 25.0}}) {
    EXPECT_TRUE(needs_last_step({.name = name})) << name;
    const Schedule schedule({.name = name}, lengths);
    EXPECT_NEAR(schedule.factor(0), first, 1e-6) << name;
    EXPECT_NEAR(schedule.factor(1000), first, 1e-6) << name;
  }
  EXPECT_FALSE(needs_last_step({.name = "constant"}));
  EXPECT_FALSE(needs_last_step({.name = "step", .step_size = {3, spec::Duration::Unit::epochs}}));
  EXPECT_TRUE(needs_last_step({.name = "constant", .warmup = {0.1, spec::Duration::Unit::fraction}}));
  EXPECT_THROW(Schedule({.name = "cosine", .warmup = {1, spec::Duration::Unit::seconds}}, lengths), Error);
}

TEST(Decline, IsFlatAndThenHalfACosine) {
  constexpr int64_t kSteps = 1000;
  for (int64_t step = 0; step < kSteps + 10; ++step) {
    const double progress = std::min(1.0, static_cast<double>(step) / kSteps);
    const double expected = progress <= 0.5 ? 1 : 0.5 * (1 + std::cos(std::numbers::pi * (2 * progress - 1)));
    EXPECT_NEAR(decline("flat_cos", step, kSteps), expected, 1e-12) << step;
    EXPECT_GE(decline("flat_cos", step, kSteps), 0) << step;
    EXPECT_EQ(decline("constant", step, kSteps), 1.0) << step;
  }
}

TEST(Decline, NeedsToKnowTheLastStep) {
  spec::Job job = job_of(40, {2, Unit::seconds});
  EXPECT_NO_THROW(check_declines(job, lengths_of(job, 107, 1)));
  job.optimizer.weight_decay_schedule = "flat_cos";
  EXPECT_THROW(check_declines(job, lengths_of(job, 107, 1)), Error);
  job.optimizer.weight_decay_schedule = "constant";
  job.model.name = "tabular";  // its dropout declines
  EXPECT_THROW(check_declines(job, lengths_of(job, 107, 1)), Error);
  job.trainer.max_duration = {3, Unit::epochs};
  EXPECT_NO_THROW(check_declines(job, lengths_of(job, 107, 1)));
}

}  // namespace
}  // namespace sinew::loop
