// Tests which shard is blamed for the deaths of workers, and what the supervisor then does.
#include "supervise/deadly_shard.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/random.h"
#include "supervise/supervision_world.h"

namespace sinew::supervise {
namespace {

Work shard(int64_t step, int64_t number) {
  return {Work::Kind::computing, step, number, 2, number * 32, 32};
}

const ProcessEnd kCrash{0, SIGSEGV}, kKill{0, SIGKILL}, kError{1, 0};

TEST(Poison, NamesAShardThatKilledThreeWorkersWithItsSamples) {
  World world(8);
  world.begin(412);
  world.pass(60, 412);
  world.end_worker(0, kCrash, {shard(412, 3)});
  world.end_worker(0, kCrash, {shard(412, 3)});
  EXPECT_FALSE(world.state.over);
  world.end_worker(0, kKill, {shard(412, 3)});
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
  EXPECT_EQ(
      world.finished->why,
      "step 412, shard 3 (samples 96 to 127 in the order of epoch 2) killed 3 workers in turn (SIGSEGV, SIGSEGV, "
      "SIGKILL: perhaps out of memory): the run is stopped\n"
      "  try: look at those samples; if memory is short, fewer workers or trainer.lanes=1. Then: sinew resume RUN "
      "--workers 8");
}

TEST(Poison, AWorkerDiesAtTheStepOfItsShardAlsoIfNobodyHasReportedIt) {
  World world(2);
  world.begin(0);
  world.end_worker(1, kCrash, {shard(7, 1)});
  EXPECT_TRUE(world.last.ends_with(" was killed by SIGSEGV at step 7")) << world.last;
}

TEST(Poison, NamesTheShardThatWasInFlightAtEachDeath) {
  const std::vector<Death> deaths = {{"SIGSEGV", {shard(5, 0), shard(5, 3)}},
                                     {"SIGSEGV", {shard(5, 3), shard(5, 6)}},
                                     {"SIGSEGV", {shard(5, 6), shard(5, 3)}}};
  EXPECT_FALSE(deadly_shard_in({deaths[0], deaths[1]}, 3, ""));
  const auto why = deadly_shard_in(deaths, 3, "");
  ASSERT_TRUE(why);
  EXPECT_EQ(why->find("step 5, shard 3 (samples 96 to 127 in the order of epoch 2) killed 3 workers"), 0u) << *why;
  const auto two = deadly_shard_in({deaths[1], deaths[2]}, 2, "");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->find("step 5, shard 3 (samples 96 to 127 in the order of epoch 2) or step 5, shard 6 (samples"), 0u)
      << *two;
}

TEST(Poison, NamesAPieceOfAnEvaluation) {
  const Work piece = {Work::Kind::evaluating, 7, 1, 0, 10, 1};
  const std::vector<Death> deaths(3, Death{"SIGABRT", {piece}});
  const auto why = deadly_shard_in(deaths, 3, "");
  ASSERT_TRUE(why);
  EXPECT_EQ(why->find("evaluation at step 7, piece 1 (sample 10) killed 3 workers in turn (SIGABRT, SIGABRT, "
                      "SIGABRT): "),
            0u)
      << *why;
  EXPECT_FALSE(deadly_shard_in({{"a", {piece}}, {"b", {shard(7, 1)}}, {"c", {shard(7, 1)}}}, 3, ""));
}

TEST(Poison, ACommittedStepClearsItsShards) {
  World world(4);
  world.begin(10);
  for (int64_t step = 10; step < 60; ++step) {
    world.pass(20, step);
    world.end_worker(0, kKill, {shard(step, 3)});
    world.end_worker(0, kKill, {shard(step, 3)});
  }
  EXPECT_FALSE(world.state.over);
  EXPECT_LE(world.state.deaths.size(), 4u);
}

// All workers died, and the run reached the same shard again from an older checkpoint.
TEST(Poison, RemembersDeathsWhenTheRunFallsBack) {
  World world(1);
  world.begin(412);
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(world.state.over) << i;
    world.pass(60, 400);
    world.end_worker(0, kKill, {shard(412, 3)});
  }
  ASSERT_TRUE(world.state.over);
  EXPECT_EQ(world.state.over->why.find("step 412, shard 3 ("), 0u);
}

TEST(Poison, EndsAfterThreeErrorsInAShardOrTwoOutsideShards) {
  World world(5);
  world.begin(7);
  world.end_worker(0, kError, {shard(7, 1)});
  world.end_worker(0, kError, {shard(7, 1)});
  EXPECT_FALSE(world.state.over);
  world.end_worker(0, kError, {shard(7, 1)});
  ASSERT_TRUE(world.state.over);
  EXPECT_NE(world.state.over->why.find("(an error, an error, an error)"), std::string::npos);
  World other(5);
  other.begin(7);
  other.end_worker(0, kError);
  other.end_worker(0, kError);
  EXPECT_TRUE(other.state.over) << "no shard is known: the job's own error";
}

TEST(Poison, CrashesOfDifferentShardsCountForTheStep) {
  World world(4);
  world.begin(7);
  world.pass(60, 7);
  for (int i = 0; i < 3; ++i) world.end_worker(0, kCrash, {shard(7, i)});
  ASSERT_TRUE(world.state.over);
  EXPECT_EQ(world.state.over->why.find("3 workers in a row died at step 7"), 0u);
}

TEST(Poison, IgnoresTheShardsOfWorkersThatLeft) {
  World world(4);
  world.begin(7);
  for (const int code : {0, 3, 2, 75, 76}) {
    World one(2);
    one.begin(7);
    one.end_worker(0, {code, 0}, {shard(7, 1)});
    EXPECT_TRUE(one.state.deaths.empty()) << code;
  }
  coordinator_answered(world.now, world.state, 1, 7, {});
  world.settle();
  for (int i = 0; i < 3; ++i) world.end_worker(1, kKill, {shard(7, 1)});
  EXPECT_TRUE(world.state.deaths.empty());
  EXPECT_FALSE(world.state.over);
}

// A user sends SIGKILL at random shards while the run makes steps.
TEST(Poison, TheRunSurvivesRandomKillsFromOutside) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(random_key({seed, 5}));
    World world(4);
    int64_t step = 3;
    world.begin(step);
    for (int kill = 0; kill < 12; ++kill) {
      world.end_worker(random.below(4), kKill, {shard(step, static_cast<int64_t>(random.below(8)))});
      step += 1 + static_cast<int64_t>(random.below(20));
      world.pass(2, step);
      ASSERT_FALSE(world.state.over) << seed;
    }
  }
}

TEST(Poison, AbortsThenKillsAHangingWorkerAndCountsItsShard) {
  World world(2);
  world.begin(7);
  for (int i = 0; i < 3; ++i) {
    const pid_t pid = world.state.workers[0].pid;
    worker_hangs(world.state, pid, "it has been at shard 1 for 90 s");
    world.pass(1, 7);
    ASSERT_EQ(world.sent.size(), 1u);
    EXPECT_EQ(world.sent[0].signal, SIGABRT);
    EXPECT_NE(world.sent[0].why.find("is stopped: it has been at shard 1 for 90 s"), std::string::npos);
    world.pass(world.options.kill_seconds, 7);
    ASSERT_EQ(world.sent.size(), 2u);
    EXPECT_EQ(world.sent[1].signal, SIGKILL);
    world.sent.clear();
    EXPECT_FALSE(world.state.over);
    world.end_worker(0, i == 0 ? kKill : ProcessEnd{0, SIGABRT}, {shard(7, 1)});
    EXPECT_NE(world.last.find("was ended because it hung"), std::string::npos);
  }
  ASSERT_TRUE(world.state.over);
  EXPECT_NE(world.state.over->why.find("killed 3 workers in turn (no end, no end, no end)"), std::string::npos);
}

TEST(Poison, TheRunSurvivesManyHangsAtDifferentWork) {
  World world(1);
  world.begin(7);
  for (int64_t i = 0; i < world.options.most_kills; ++i) {
    ASSERT_FALSE(world.state.over) << i;
    worker_hangs(world.state, world.state.workers.at(0).pid, "it hangs");
    world.pass(1, 7);
    world.end_worker(0, {0, SIGABRT});
    world.pass(20, 7);
  }
  EXPECT_TRUE(world.state.over);
}

}  // namespace
}  // namespace sinew::supervise
