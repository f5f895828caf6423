// Tests how the supervisor replaces workers that die, leave and come, and after how many deaths it ends the run.
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "supervise/supervision_world.h"

namespace sinew::supervise {
namespace {

TEST(Supervision, StartsTheCoordinatorThenTheWorkers) {
  World world(3);
  world.settle();
  EXPECT_GT(world.state.coordinator.pid, 0);
  EXPECT_TRUE(world.state.workers.empty()) << "nobody to talk to yet";
  world.tell(0);
  EXPECT_EQ(world.state.workers.size(), 3u);
}

TEST(Supervision, ReplacesAKilledWorkerAtOnceAndGivesTheReason) {
  World world(3);
  world.begin(40);
  const pid_t pid = world.state.workers[1].pid;
  world.end_worker(1, {0, SIGKILL});
  EXPECT_EQ(world.state.workers.size(), 3u);
  EXPECT_EQ(world.last, "worker 2 (pid " + std::to_string(pid) + ") was killed by SIGKILL at step 40");
}

TEST(Supervision, RestartsAFencedWorkerWithoutCountingAFailure) {
  World world(1);
  world.begin(40);
  for (int i = 0; i < 20; ++i) {
    world.pass(20, 40);
    world.end_worker(0, {kRejoin, 0});
    ASSERT_EQ(world.state.workers.size(), 1u);
  }
}

TEST(Supervision, ThreeYoungDeathsStopTheRun) {
  World world(1);
  world.begin();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(world.state.workers.size(), 1u) << i;
    world.end_worker(0, {0, SIGSEGV});
    world.pass(1, 0);
  }
  EXPECT_TRUE(world.state.workers.empty());
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
  EXPECT_EQ(world.finished->why,
            "3 workers in a row died at step 0, the last killed by SIGSEGV, within 5 s of its start: the run is "
            "stopped");
}

TEST(Supervision, NamesAStepThatCrashesEveryWorker) {
  World world(4);
  world.begin(120);
  world.pass(60, 120);
  for (int i = 0; i < 3; ++i) world.end_worker(0, {0, SIGABRT});
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
  EXPECT_EQ(world.finished->why,
            "3 workers in a row died at step 120, the last killed by SIGABRT: that step ends every worker that "
            "computes it; the run is stopped");
}

TEST(Supervision, TheRunSurvivesDeathsWithStepsInBetween) {
  World world(2);
  world.begin();
  for (int64_t step = 1; step < 30; ++step) {
    world.pass(20, step);
    world.end_worker(0, {0, SIGSEGV});
    world.settle();
    ASSERT_EQ(world.state.workers.size(), 2u) << step;
  }
  EXPECT_FALSE(world.finished);
}

TEST(Supervision, TheRunSurvivesManyKillsWhileItMakesSteps) {
  World world(2);
  world.begin(5);
  for (int64_t i = 1; i < world.options.most_kills; ++i) {
    world.end_worker(0, {0, SIGKILL});
    ASSERT_EQ(world.state.workers.size(), 2u) << i;
  }
  world.pass(1, 6);
  world.end_worker(0, {0, SIGKILL});
  EXPECT_FALSE(world.state.over);
  for (int64_t i = 1; i < world.options.most_kills; ++i) world.end_worker(0, {0, SIGKILL});
  ASSERT_TRUE(world.state.over);
  EXPECT_NE(world.state.over->why.find("out of memory"), std::string::npos);
}

TEST(Supervision, DelaysTheStartsOfWorkersThatKeepDyingYoung) {
  World world(2);
  world.begin();
  double waited = 0;
  for (int64_t step = 1; step < 12; ++step) {
    world.tell(step);  // the other worker makes steps
    world.end_worker(1, {0, SIGSEGV});
    for (waited = 0; world.state.workers.size() < 2 && waited < 60; waited += 0.25) world.pass(0.25, step);
    ASSERT_EQ(world.state.workers.size(), 2u);
    EXPECT_LE(waited, world.options.longest_delay + 0.5);
  }
  EXPECT_GE(waited, world.options.longest_delay - 0.5);
}

TEST(Supervision, AnErrorOfTheOnlyWorkerEndsTheRun) {
  World world(1);
  world.begin(7);
  world.end_worker(0, {1, 0});
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
}

TEST(Supervision, ASecondErrorAtAStepEndsTheRun) {
  World world(3);
  world.begin(7);
  world.end_worker(0, {1, 0});
  EXPECT_FALSE(world.state.over);
  EXPECT_EQ(world.state.workers.size(), 3u);
  world.pass(1, 8);
  world.end_worker(0, {1, 0});
  EXPECT_FALSE(world.state.over) << "a step was made in between";
  world.end_worker(0, {1, 0});
  ASSERT_TRUE(world.state.over);
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
}

TEST(Supervision, AnInvalidJobEndsTheRunAtOnce) {
  World world(3);
  world.begin();
  world.end_worker(0, {2, 0});
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 2);
}

TEST(Supervision, ReplacesAWorkerThatLeftUnlessTheRunWasStopped) {
  World world(2);
  world.begin(10);
  world.end_worker(0, {75, 0});
  EXPECT_EQ(world.state.workers.size(), 1u) << "first the coordinator is heard";
  world.pass(0.1, 10);
  EXPECT_EQ(world.state.workers.size(), 2u);
  world.end_worker(0, {75, 0});
  world.now += 0.1;
  world.tell(10, 75);
  EXPECT_EQ(world.state.workers.size(), 1u);
  ASSERT_TRUE(world.state.over);
  EXPECT_EQ(world.state.over->code, 75);
}

TEST(Supervision, ScalesUpAndAsksTheNewestWorkersToLeave) {
  World world(2);
  world.begin(10);
  coordinator_answered(world.now, world.state, 4, 10, {});
  world.settle();
  ASSERT_EQ(world.state.workers.size(), 4u);
  const auto pids = world.pids();
  world.last = coordinator_answered(world.now, world.state, 1, 10, {});
  EXPECT_EQ(world.last, "1 workers wanted instead of 4 at step 10");
  world.settle();
  std::set<pid_t> asked;
  for (const Action& action : world.sent) {
    EXPECT_EQ(action.signal, SIGTERM);
    asked.insert(action.pid);
  }
  EXPECT_EQ(asked, (std::set<pid_t>{pids[1], pids[2], pids[3]}));
  world.obey();
  EXPECT_EQ(world.pids(), std::vector<pid_t>{pids[0]});
  EXPECT_FALSE(world.state.over);
}

// The group went on without a worker while that worker was suspended, so the worker does not have the state.
TEST(Supervision, KeepsComputingWorkersRatherThanOlderIdleOnes) {
  World world(4);
  world.begin(10);
  const auto pids = world.pids();
  coordinator_answered(world.now, world.state, 2, 10, {}, 3,
                       {.computing = {pids[1], pids[2], pids[3], 4711}, .leaving = {}});
  world.settle();
  world.obey();
  EXPECT_EQ(world.pids(), (std::vector<pid_t>{pids[1], pids[2]}));
  coordinator_answered(world.now, world.state, 1, 10, {}, 1, {.computing = {pids[2]}, .leaving = {}});
  world.settle();
  world.obey();
  EXPECT_EQ(world.pids(), std::vector<pid_t>{pids[2]});
  EXPECT_FALSE(world.state.over);
}

TEST(Supervision, ReplacesAWorkerThatTheUserToldToLeave) {
  World world(2);
  world.begin(10);
  const auto pids = world.pids();
  coordinator_answered(world.now, world.state, 2, 10, {}, 1, {.computing = {pids[1]}, .leaving = {pids[0]}});
  world.settle();
  EXPECT_EQ(world.state.workers.size(), 3u) << "another comes before it goes";
  coordinator_answered(world.now, world.state, 1, 10, {}, 1, {.computing = {pids[1]}, .leaving = {pids[0]}});
  world.settle();
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(world.sent[0].pid, world.state.workers[2].pid);
}

TEST(Supervision, AWorkerThatWasAskedToLeaveCanEndTheRun) {
  World world(2);
  world.begin(40);
  world.last = coordinator_answered(world.now, world.state, 1, 40, {});
  world.settle();
  ASSERT_TRUE(world.state.workers[1].asked);
  world.end_worker(0, {0, SIGKILL});
  world.end_worker(0, {0, 0});  // this worker was asked to leave
  ASSERT_TRUE(world.state.over);
  world.end_worker(0, {1, 0});  // the group refused its replacement, because the run is over
  EXPECT_EQ(world.state.over->code, 0);
}

TEST(Supervision, KillsAWorkerThatDoesNotLeave) {
  World world(2);
  world.begin(10);
  coordinator_answered(world.now, world.state, 1, 10, {});
  world.settle();
  world.sent.clear();
  world.pass(world.options.leave_seconds - 1, 11);
  EXPECT_TRUE(world.sent.empty());
  world.pass(2, 12);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(world.sent[0].signal, SIGKILL);
}

// `ulimit -t` or `ulimit -f` ends each worker in turn, before the run has trained or after it.
TEST(Supervision, ALimitThatEndsEveryWorkerEndsTheRunWithItsName) {
  for (const int signal : {SIGXCPU, SIGXFSZ}) {
    World world(1);
    world.begin();
    world.pass(600, 100);
    world.end_worker(0, {0, signal});
    EXPECT_FALSE(world.state.over) << "it made steps";
    world.pass(60, 90);
    world.end_worker(0, {0, signal});
    EXPECT_FALSE(world.state.over);
    world.pass(60, 90);
    world.end_worker(0, {0, signal});
    ASSERT_TRUE(world.state.over);
    EXPECT_EQ(world.state.over->code, kTrainingError);
    EXPECT_NE(world.state.over->why.find(limit_behind(signal)), std::string::npos) << world.state.over->why;
  }
}

TEST(Supervision, ALimitEndsNoRunThatMakesSteps) {
  World world(2);
  world.begin();
  for (int64_t step = 1; step < 100; ++step) {
    world.pass(60, step);
    world.end_worker(0, {0, SIGXCPU});
    world.end_worker(0, {0, SIGXCPU});
  }
  EXPECT_FALSE(world.state.over);
}

// The supervisor's sentence, and therefore its report, quotes the worker's error: no other process can quote it.
TEST(Supervision, QuotesTheErrorOfAWorker) {
  World world(1);
  world.begin();
  const std::string said = worker_ended(world.now, world.state, world.pids()[0], {1, 0}, {}, world.options,
                                        "x.csv has no column 'y' [DATA_NO_COLUMN]");
  EXPECT_NE(said.find("ended with an error: x.csv has no column 'y' [DATA_NO_COLUMN]"), std::string::npos) << said;
  EXPECT_TRUE(world.state.over);
}

}  // namespace
}  // namespace sinew::supervise
