// Tests that the supervisor ends in bounded time in every case: the coordinator dies, the run is stopped, or the run
// ends.
#include <gtest/gtest.h>

#include <csignal>
#include <utility>
#include <vector>

#include "base/random.h"
#include "supervise/supervision_world.h"

namespace sinew::supervise {
namespace {

TEST(SupervisionEnd, AWorkersEndGivesTheRunsExitCode) {
  for (const int code : {0, 3}) {
    World world(2);
    world.begin(90);
    world.end_worker(0, {code, 0});
    EXPECT_EQ(world.state.workers.size(), 1u) << "nobody is started after the end";
    EXPECT_TRUE(world.sent.empty()) << "the other ends by itself";
    world.end_worker(0, {code, 0});
    world.end_coordinator({code, 0}, code);
    ASSERT_TRUE(world.finished);
    EXPECT_EQ(world.finished->code, code);
  }
}

// The supervisor was suspended, or cut off from the run directory, and meanwhile a member was elected coordinator.
TEST(SupervisionEnd, AnotherCoordinatorLeadsSoThisSupervisorStepsDown) {
  World world(2);
  world.begin(90);
  world.end_coordinator({kRejoin, 0});
  EXPECT_TRUE(world.state.coordinator.superseded);
  EXPECT_EQ(world.state.coordinator.pid, 0) << "it starts no coordinator against the other one";
  ASSERT_EQ(world.sent.size(), 2u) << "the workers leave";
  EXPECT_EQ(world.sent[0].signal, SIGTERM);
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, kResumable);
  EXPECT_NE(world.finished->why.find("this supervisor steps down"), std::string::npos);
}

TEST(SupervisionEnd, AfterTheEndAsksThenKillsRemainingWorkers) {
  World world(2);
  world.begin(90);
  world.tell(90, 0);
  world.pass(world.options.end_seconds, 90);
  ASSERT_EQ(world.sent.size(), 2u);
  EXPECT_EQ(world.sent[0].signal, SIGTERM);
  world.sent.clear();
  world.pass(world.options.kill_seconds, 90);
  ASSERT_EQ(world.sent.size(), 2u);
  EXPECT_EQ(world.sent[0].signal, SIGKILL);
  world.obey();
  world.pass(world.options.linger_seconds, 90);
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 0);
}

// While no coordinator could reach this worker, the group fenced it. The worker never learns that the run is over.
TEST(SupervisionEnd, DoesNotWaitLongForAWorkerThatCannotLearnOfTheEnd) {
  World world(2);
  world.begin(90);
  world.tell(90, 0);
  world.end_worker(0, {0, 0});
  world.end_coordinator({0, 0}, 0);
  world.pass(world.options.linger_seconds + 1, 90);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(world.sent[0].signal, SIGTERM);
  world.pass(world.options.kill_seconds, 90);
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 0);
}

TEST(SupervisionEnd, ReplacesADeadCoordinatorAndKeepsTheWorkers) {
  World world(3);
  world.begin(10);
  const auto pids = world.pids();
  for (int i = 0; i < 10; ++i) {
    const pid_t before = world.state.coordinator.pid;
    world.end_coordinator({0, SIGKILL});
    EXPECT_NE(world.state.coordinator.pid, before);
    EXPECT_GT(world.state.coordinator.pid, 0);
    world.pass(0.1, 10);
    EXPECT_EQ(world.pids(), pids);
  }
}

TEST(SupervisionEnd, KillsACoordinatorThatDoesNotAnswer) {
  World world(1);
  world.begin(10);
  world.now += world.options.unresponsive_seconds - 1;
  world.settle();
  EXPECT_TRUE(world.sent.empty());
  world.now += 2;
  world.settle();
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(world.sent[0], (Action{Action::Kind::send, world.state.coordinator.pid, SIGKILL, 0,
                                   "the coordinator does not answer: sinew replaces it"}));
}

TEST(SupervisionEnd, ACoordinatorThatNeverStartsEndsTheRun) {
  World world(1);
  world.settle();
  for (int i = 0; i < 3; ++i) world.end_coordinator({1, 0});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
  EXPECT_NE(world.finished->why.find("does not start"), std::string::npos);
}

// Coordinators cannot start for a while because something is missing, such as disk space or a free process.
TEST(SupervisionEnd, ARunSurvivesCoordinatorsThatDoNotStart) {
  World world(2);
  world.begin(10);
  const auto pids = world.pids();
  world.end_coordinator({0, SIGKILL});
  int lives = 0;
  for (double passed = 0; passed < 30; passed += 0.1) {
    world.now += 0.1;
    if (world.state.coordinator.pid > 0) world.end_coordinator({1, 0}), ++lives;
    world.settle();
  }
  EXPECT_GE(lives, 5);
  EXPECT_LE(lives, 40) << "not as fast as they die";
  EXPECT_FALSE(world.state.over);
  EXPECT_EQ(world.pids(), pids);
  for (; world.state.coordinator.pid == 0; world.settle()) world.now += 0.1;
  world.tell(12);
  world.end_coordinator({0, SIGKILL});
  EXPECT_GT(world.state.coordinator.pid, 0) << "at once: the last one answered";
  for (double passed = 0; passed < 100 && !world.finished; passed += 0.1) {
    world.now += 0.1;
    if (world.state.coordinator.pid > 0) world.end_coordinator({1, 0});
    world.settle();
    world.obey();
  }
  ASSERT_TRUE(world.finished) << "not for ever";
  EXPECT_NE(world.finished->why.find("does not start"), std::string::npos);
}

TEST(SupervisionEnd, TriesAgainToStartAProcess) {
  for (const bool coordinator : {true, false}) {
    World world(2);
    world.begin(10);
    world.starts = false;
    if (coordinator) world.end_coordinator({0, SIGKILL});
    if (!coordinator) world.end_worker(0, {0, SIGKILL});
    const auto pass = [&](double seconds) {
      for (double passed = 0; passed < seconds; passed += 0.1) {
        if (coordinator) world.now += 0.1, world.settle();  // the coordinator reports nothing
        if (!coordinator) world.pass(0.1, 10);
      }
    };
    pass(2);
    EXPECT_FALSE(world.state.over);
    world.starts = true;
    pass(world.options.retry_seconds + 0.2);
    EXPECT_GT(world.state.coordinator.pid, 0);
    EXPECT_EQ(world.state.workers.size(), 2u);
    EXPECT_FALSE(world.state.over);
  }
}

TEST(SupervisionEnd, EndsTheRunIfAProcessCanNeverBeStarted) {
  for (const bool coordinator : {true, false}) {
    World world(1);
    world.begin(10);
    world.starts = false;
    if (coordinator) world.end_coordinator({0, SIGKILL});
    if (!coordinator) world.end_worker(0, {0, SIGKILL});
    for (double passed = 0; passed < 200 && !world.finished; passed += 0.5) {
      if (coordinator) world.now += 0.5, world.settle();
      if (!coordinator) world.pass(0.5, 10);
      world.obey();
    }
    ASSERT_TRUE(world.finished) << coordinator;
    EXPECT_EQ(world.finished->code, 1);
    EXPECT_NE(world.finished->why.find("too many processes"), std::string::npos) << world.finished->why;
  }
}

TEST(SupervisionEnd, AStopReachesMembersOfOtherMachines) {
  World world(1);
  world.begin(10);
  world.end_worker(0, {0, SIGKILL});
  world.state.workers.clear();  // no replacement has been started yet
  coordinator_answered(world.now, world.state, 1, 11, {}, 2);
  stop_requested(world.now, world.state, SIGTERM);
  world.settle();
  EXPECT_EQ(world.stops_delivered, 1);
  EXPECT_FALSE(world.state.over);
  world.now += 1;
  world.tell(12, 75, 2);
  world.pass(world.options.linger_seconds, 12);
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 75);
}

TEST(SupervisionEnd, SendsAStopRequestOnceAndEndsResumable) {
  World world(2);
  world.begin(10);
  stop_requested(world.now, world.state, SIGINT);
  world.settle();
  world.pass(1, 11);
  EXPECT_EQ(world.stops_delivered, 1);
  EXPECT_TRUE(world.sent.empty());
  world.end_worker(0, {75, 0});
  world.end_worker(0, {75, 0});
  world.end_coordinator({75, 0}, 75);
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 75);
}

// A service manager signals all processes of a run. The worker that leaves first does not decide the run's exit code.
TEST(SupervisionEnd, TheLastWorkerOfAStoppedRunDecidesItsExitCode) {
  const std::vector<std::pair<ProcessEnd, int>> cases = {{{75, 0}, 75}, {{0, 0}, 0}, {{3, 0}, 3}, {{0, SIGKILL}, 143}};
  for (const auto& [last, code] : cases) {
    World world(2);
    world.begin(10);
    stop_requested(world.now, world.state, SIGTERM);
    world.settle();
    world.end_worker(0, {75, 0});
    EXPECT_FALSE(world.state.over) << "the other has the state";
    world.pass(1, 10);
    world.end_worker(0, last);
    for (int i = 0; i < 100 && !world.finished; ++i) {
      world.pass(1, 10);
      world.obey();
    }
    ASSERT_TRUE(world.finished);
    EXPECT_EQ(world.finished->code, code);
  }
}

TEST(SupervisionEnd, WorkersOfOtherMachinesDecideTheExitCodeOfAStoppedRun) {
  World world(1);
  world.begin(10);
  coordinator_answered(world.now, world.state, 1, 11, {}, 3, {world.pids(), {}});
  stop_requested(world.now, world.state, SIGTERM);
  world.settle();
  world.end_worker(0, {75, 0});
  EXPECT_FALSE(world.state.over) << "others compute";
  world.tell(12, 0, 2);
  world.pass(world.options.linger_seconds, 12);
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 0);
}

TEST(SupervisionEnd, KeepsACoordinatorUntilAllKnowThatTheRunIsOver) {
  World world(2);
  world.begin(10);
  world.end_worker(0, {0, 0});
  world.end_coordinator({0, SIGKILL});
  EXPECT_GT(world.state.coordinator.pid, 0) << "the other does not know yet";
  world.end_coordinator({0, 0}, 0);
  EXPECT_EQ(world.state.coordinator.pid, 0);
  world.end_worker(0, {0, 0});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 0);
}

TEST(SupervisionEnd, ASecondSignalKillsAll) {
  for (const int signal : {SIGINT, SIGTERM}) {
    World world(2);
    world.begin(10);
    stop_requested(world.now, world.state, signal);
    stop_requested(world.now, world.state, signal);
    world.settle();
    ASSERT_TRUE(world.finished);
    EXPECT_EQ(world.finished->code, 128 + signal);
    EXPECT_EQ(world.sent.size(), 3u);
    for (const Action& action : world.sent) EXPECT_EQ(action.signal, SIGKILL);
  }
}

// When a terminal closes, its shell and the kernel both send SIGHUP. The end of a session also sends SIGTERM.
TEST(SupervisionEnd, AClosedTerminalCountsAsOneRequest) {
  for (const int second : {SIGHUP, SIGTERM}) {
    World world(2);
    world.begin(10);
    for (const int signal : {SIGHUP, second, SIGHUP}) stop_requested(world.now, world.state, signal);
    world.settle();
    EXPECT_FALSE(world.finished);
    EXPECT_TRUE(world.sent.empty()) << "they save";
    EXPECT_EQ(world.state.stop.signal(), second);
  }
}

TEST(SupervisionEnd, AStopWithoutAWorkerToSaveIsNotResumable) {
  World world(2);
  world.settle();
  stop_requested(world.now, world.state, SIGTERM);
  world.settle();
  world.settle();
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 143);
}

TEST(SupervisionEnd, AStopThatTakesTooLongIsForced) {
  World world(2);
  world.begin(10);
  stop_requested(world.now, world.state, SIGINT);
  for (double waited = 0; waited < 2000 && !world.finished; waited += 1) {
    world.pass(1, 10);
    if (!world.sent.empty() && world.sent.back().signal == SIGKILL) world.obey();
  }
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 130);
}

// For any events in any order: once the run is over or was stopped, it ends in bounded time, and no process is left
// alive. The number of workers never exceeds the wanted number, apart from workers that were asked to leave.
TEST(SupervisionEnd, TheRunEndsAfterAnySequenceOfEvents) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(random_key({seed, 77}));
    World world(1 + static_cast<int64_t>(random.below(4)));
    int64_t step = 0;
    world.begin();
    const std::vector<ProcessEnd> ends = {{0, SIGKILL}, {0, SIGTERM}, {0, SIGSEGV}, {76, 0}, {75, 0}, {1, 0}};
    for (int i = 0; i < 60 && !world.finished; ++i) {
      world.now += random.uniform(0, 3);
      const uint64_t what = random.below(10);
      if (what < 4 && !world.state.workers.empty()) {
        world.end_worker(random.below(world.state.workers.size()), ends[random.below(ends.size())]);
      } else if (what == 4 && world.state.coordinator.pid > 0) {
        world.end_coordinator({0, SIGKILL});
      } else if (what == 5) {
        coordinator_answered(world.now, world.state, 1 + static_cast<int64_t>(random.below(5)), step, {});
      } else {
        world.tell(step += static_cast<int64_t>(random.below(2)));
      }
      world.settle();
      int64_t staying = 0;
      for (const auto& worker : world.state.workers) staying += worker.asked ? 0 : 1;
      ASSERT_TRUE(world.state.over || staying <= world.state.wanted) << seed;
    }
    if (!world.finished) stop_requested(world.now, world.state, SIGTERM);
    for (double waited = 0; waited < 3000 && !world.finished; waited += 1) {
      world.pass(1, step);
      // No process reacts to SIGTERM; only SIGKILL ends it.
      std::erase_if(world.sent, [](const Action& action) { return action.signal != SIGKILL; });
      world.obey();
    }
    ASSERT_TRUE(world.finished) << seed;
    ASSERT_TRUE(world.state.workers.empty() || world.state.stop.immediate()) << seed;
  }
}

}  // namespace
}  // namespace sinew::supervise
