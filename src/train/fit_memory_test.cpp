#include "train/fit_memory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace sinew::train {
namespace {

// A machine on which everything is known: what a shape needs.
struct World {
  double base = 300e6, of_lane = 40e6, of_sample = 5e6;  // bytes
  int64_t ends_at = int64_t{1} << 40;                    // a trial that needs more ends early
  int64_t fewest_samples = 1;                            // of a shard; the model takes no fewer

  int64_t samples(StepShape shape, int64_t batch) const { return (batch + shape.shards - 1) / shape.shards; }
  int64_t bytes(StepShape shape, int64_t batch) const {
    return std::llround(base + static_cast<double>(shape.lanes) *
                                   (of_lane + of_sample * static_cast<double>(samples(shape, batch))));
  }
  MemoryTrial trial(StepShape shape, int64_t batch) const {
    if (samples(shape, batch) < fewest_samples) return {.shape = shape, .error = "too few samples"};
    const int64_t needed = bytes(shape, batch);
    if (needed > ends_at) return {.shape = shape, .ended_early = true};
    return {.shape = shape, .bytes = needed};
  }
};

constexpr size_t kMostTrials = 24;

struct Chosen {
  FitChoice choice;
  size_t trials = 0;
};

Chosen choose(const World& world, const FitProblem& problem) {
  std::vector<MemoryTrial> trials;
  for (;;) {
    const auto next = next_fit(problem, trials);
    if (const auto* choice = std::get_if<FitChoice>(&next)) return {*choice, trials.size()};
    const StepShape shape = std::get<StepShape>(next);
    for (const MemoryTrial& trial : trials) EXPECT_FALSE(trial.shape == shape) << "tried twice";
    trials.push_back(world.trial(shape, problem.batch_size));
    if (trials.size() > kMostTrials) ADD_FAILURE() << "too many trials";
    if (trials.size() > kMostTrials) return {};
  }
}

FitProblem problem_with(int64_t room, StepShape wanted = {4, 8}) {
  return {.room = room, .batch_size = 256, .wanted = wanted, .may_change_shards = true, .may_change_lanes = true};
}

TEST(FitMemory, WhatFitsStays) {
  const Chosen chosen = choose({}, problem_with(1'100'000'000));
  EXPECT_EQ(chosen.choice.shape, (StepShape{4, 8}));
  EXPECT_TRUE(chosen.choice.fits);
  EXPECT_EQ(chosen.trials, 1U);
}

TEST(FitMemory, FewerLanesComeBeforeSmallerShards) {  // shards are part of the result, and lanes are not
  const Chosen chosen = choose({}, problem_with(750'000'000));
  EXPECT_EQ(chosen.choice.shape, (StepShape{2, 8}));
  EXPECT_EQ(chosen.choice.wanted_bytes, World().bytes({4, 8}, 256));
  EXPECT_EQ(chosen.choice.least_bytes, World().bytes({2, 8}, 256));
}

TEST(FitMemory, TheShardsAreTheFewestThatFitOneLane) {
  const Chosen chosen = choose({}, problem_with(430'000'000));  // 18 samples on a lane
  EXPECT_EQ(chosen.choice.shape, (StepShape{1, 16}));
  for (const int64_t lanes : {1, 2, 16}) {  // as many on any machine
    EXPECT_EQ(choose({}, problem_with(430'000'000, {lanes, 8})).choice.shape.shards, 16) << lanes;
  }
}

TEST(FitMemory, ASizeThatTheModelDoesNotTakeIsLeftOut) {
  World world;
  world.fewest_samples = 2;  // as batch normalization
  EXPECT_EQ(choose(world, problem_with(430'000'000)).choice.shape, (StepShape{1, 16}));
  EXPECT_EQ(choose(world, problem_with(350'500'000)).choice.shape, (StepShape{1, 128}));
  const Chosen none = choose(world, problem_with(346'000'000));  // one sample would fit
  EXPECT_FALSE(none.choice.fits);
  EXPECT_EQ(none.choice.shape, (StepShape{1, 128}));
  EXPECT_EQ(none.choice.least_bytes, world.bytes({1, 128}, 256));
}

TEST(FitMemory, WhatTheUserGaveStays) {
  FitProblem problem = problem_with(700'000'000);
  problem.may_change_shards = false;
  EXPECT_EQ(choose({}, problem).choice.shape, (StepShape{2, 8}));
  problem = problem_with(700'000'000);
  problem.may_change_lanes = false;
  EXPECT_EQ(choose({}, problem).choice.shape, (StepShape{4, 32}));
  problem.may_change_shards = false;
  const Chosen none = choose({}, problem);
  EXPECT_FALSE(none.choice.fits);
  EXPECT_EQ(none.choice.shape, problem.wanted);
  EXPECT_EQ(none.choice.least_bytes, World().bytes(problem.wanted, 256));
}

TEST(FitMemory, IfNothingFitsItSaysWhatTheLeastNeeds) {
  World world;
  Chosen chosen = choose(world, problem_with(340'000'000));
  EXPECT_FALSE(chosen.choice.fits);
  EXPECT_EQ(chosen.choice.shape, (StepShape{1, 256}));
  EXPECT_EQ(chosen.choice.least_bytes, world.bytes({1, 256}, 256));
  world.ends_at = 310'000'000;
  chosen = choose(world, problem_with(305'000'000));
  EXPECT_FALSE(chosen.choice.fits);
  EXPECT_EQ(chosen.choice.least_bytes, 0);
}

TEST(FitMemory, ABatchOfOneSampleHasOneShape) {
  FitProblem problem = problem_with(310'000'000, {1, 1});
  problem.batch_size = 1;
  EXPECT_FALSE(choose({}, problem).choice.fits);
  problem.room = 400'000'000;
  EXPECT_TRUE(choose({}, problem).choice.fits);
}

// In random worlds, the choice fits, no fewer shards fit one lane, and no more lanes fit these shards.
TEST(FitMemory, TheChoiceIsThatOfAnExhaustiveSearch) {
  RandomStream random(random_key({7}));
  const auto draw = [&](double low, double high) { return low * std::pow(high / low, random.uniform()); };
  for (int i = 0; i < 2000; ++i) {
    World world{.base = draw(1e8, 4e8), .of_lane = draw(1e6, 3e8), .of_sample = draw(1e4, 5e7)};
    const auto batch = static_cast<int64_t>(draw(1, 1024));
    const int64_t usual = data::default_shards(batch);
    const FitProblem problem{.room = std::llround(draw(1.2e8, 3e9)),
                             .batch_size = batch,
                             .wanted = {std::min<int64_t>(std::llround(draw(1, 16)), usual), usual},
                             .may_change_shards = true,
                             .may_change_lanes = true};
    world.ends_at = problem.room + problem.room / 10;
    const auto fits = [&](int64_t lanes, int64_t shards) {
      return world.bytes({lanes, shards}, batch) <= problem.room;
    };
    int64_t shards = usual;
    while (!fits(1, shards) && shards < batch) shards = std::min(2 * shards, batch);
    const Chosen chosen = choose(world, problem);
    ASSERT_EQ(chosen.choice.fits, fits(1, shards)) << i;
    if (!chosen.choice.fits) continue;
    int64_t lanes = std::min(problem.wanted.lanes, shards);
    while (!fits(lanes, shards)) --lanes;
    ASSERT_EQ(chosen.choice.shape, (StepShape{lanes, shards})) << i;
  }
}

TEST(FitMemory, TheBoundGrowsWithTheJob) {
  data::DataInfo info;
  info.input_shape = {3, 32, 32};
  info.classes = 10;
  spec::Job job;
  const int64_t plain = memory_bound(job, info, 2, 8, false);
  EXPECT_GT(memory_bound(job, info, 4, 8, false), plain);
  EXPECT_GT(memory_bound(job, info, 2, 1, false), plain);
  EXPECT_GT(memory_bound(job, info, 2, 8, true), plain);
  EXPECT_LT(plain, int64_t{1} << 30);  // a usual job with a usual budget is not tried
  job.model.name = "resnet50";
  info.input_shape = {3, 224, 224};
  EXPECT_GT(memory_bound(job, info, 2, 8, false), plain + (int64_t{1} << 30));
  job.model.name = "library";
  job.model.file = "/no/such/file";
  EXPECT_GT(memory_bound(job, info, 2, 8, false), int64_t{1} << 40);  // unknown, so it must be tried
}

}  // namespace
}  // namespace sinew::train
