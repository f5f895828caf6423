#include "cli/supervision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "base/random.h"

namespace sinew::cli {
namespace {

using Kind = Action::Kind;

// A supervisor whose processes are numbers. Time passes only when told.
struct World {
  Supervision state;
  SupervisionOptions options;
  double now = 100;
  pid_t next_pid = 1000;
  int64_t number = 0;
  std::optional<Action> finished;
  std::vector<Action> sent;
  std::string last;  // what was said of the last event
  int stops_told = 0;

  explicit World(int64_t wanted) { state.wanted = wanted; }

  // Does what is decided until nothing is left to do at this instant.
  void settle() {
    for (int round = 0; round < 10 && !finished; ++round) {
      const auto actions = next_actions(now, state, options);
      bool changed = false;
      for (const Action& action : actions) {
        changed = changed || action.kind != Kind::tell_stop;
        if (action.kind == Kind::start_coordinator) coordinator_started(now, state, next_pid++);
        if (action.kind == Kind::start_worker) worker_started(now, state, ++number, next_pid++);
        if (action.kind == Kind::send) sent.push_back(action);
        if (action.kind == Kind::tell_stop) state.stop_told = ++stops_told > 0;
        if (action.kind == Kind::finish) finished = action;
      }
      if (!changed) return;
    }
  }
  void tell(int64_t step, std::optional<int64_t> over = {}) {
    last = coordinator_told(now, state, state.wanted, step, over);
    settle();
  }
  void begin(int64_t step = 0) {
    settle();
    tell(step);
  }
  void pass(double seconds, int64_t step) {
    now += seconds;
    tell(step);
  }
  void end_worker(size_t index, ProcessEnd end) {
    last = worker_ended(now, state, state.workers.at(index).pid, end, options);
    settle();
  }
  void end_coordinator(ProcessEnd end, std::optional<int64_t> over = {}) {
    last = coordinator_ended(now, state, end, over, options);
    settle();
  }
  std::vector<pid_t> pids() const {
    std::vector<pid_t> found;
    for (const auto& worker : state.workers) found.push_back(worker.pid);
    return found;
  }
  // Everybody who is told to go goes.
  void obey() {
    for (size_t done = 0; done < sent.size(); ++done) {
      const Action action = sent[done];
      if (action.pid == state.coordinator.pid) end_coordinator({0, action.signal});
      const auto all = pids();
      const auto found = std::find(all.begin(), all.end(), action.pid);
      if (found != all.end()) end_worker(static_cast<size_t>(found - all.begin()), {0, action.signal});
    }
    sent.clear();
  }
};

TEST(Supervision, StartsTheCoordinatorThenTheWorkers) {
  World world(3);
  world.settle();
  EXPECT_GT(world.state.coordinator.pid, 0);
  EXPECT_TRUE(world.state.workers.empty()) << "nobody to talk to yet";
  world.tell(0);
  EXPECT_EQ(world.state.workers.size(), 3u);
}

TEST(Supervision, AKilledWorkerIsReplacedAtOnceAndItIsSaidWhy) {
  World world(3);
  world.begin(40);
  const pid_t pid = world.state.workers[1].pid;
  world.end_worker(1, {0, SIGKILL});
  EXPECT_EQ(world.state.workers.size(), 3u);
  EXPECT_EQ(world.last, "worker 2 (pid " + std::to_string(pid) + ") was killed by SIGKILL at step 40");
}

TEST(Supervision, AnotherLifeIsBegunAndNoFailure) {
  World world(1);
  world.begin(40);
  for (int i = 0; i < 20; ++i) {
    world.pass(20, 40);
    world.end_worker(0, {kAnotherLife, 0});
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

TEST(Supervision, AStepThatCrashesWhoeverComputesItIsNamed) {
  World world(4);
  world.begin(120);
  world.pass(60, 120);
  for (int i = 0; i < 3; ++i) world.end_worker(0, {0, SIGABRT});
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
  EXPECT_EQ(world.finished->why,
            "3 workers in a row died at step 120, the last killed by SIGABRT: that step brings down whoever computes "
            "it; the run is stopped");
}

TEST(Supervision, DeathsWithStepsInBetweenAreLivedThrough) {
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

TEST(Supervision, ManyKillsByOthersAreLivedThroughUntilNothingMoves) {
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

TEST(Supervision, YoungDeathsAgainAndAgainAreStartedSlower) {
  World world(2);
  world.begin();
  double waited = 0;
  for (int64_t step = 1; step < 12; ++step) {
    world.tell(step);  // the other goes on
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

TEST(Supervision, AnErrorOfOneIsItsOwnAndOfTwoTheJobs) {
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

TEST(Supervision, AJobNobodyUnderstandsEndsAtOnce) {
  World world(3);
  world.begin();
  world.end_worker(0, {2, 0});
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 2);
}

TEST(Supervision, TheRunsEndIsItsExitCode) {
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

TEST(Supervision, WhoDoesNotEndAfterTheEndIsAskedThenKilled) {
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

TEST(Supervision, AWorkerThatLeftIsReplacedUnlessTheRunWasStopped) {
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

TEST(Supervision, ScalesUpAndDownByTheNewest) {
  World world(2);
  world.begin(10);
  coordinator_told(world.now, world.state, 4, 10, {});
  world.settle();
  ASSERT_EQ(world.state.workers.size(), 4u);
  const auto pids = world.pids();
  world.last = coordinator_told(world.now, world.state, 1, 10, {});
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

TEST(Supervision, WhoDoesNotLeaveIsKilled) {
  World world(2);
  world.begin(10);
  coordinator_told(world.now, world.state, 1, 10, {});
  world.settle();
  world.sent.clear();
  world.pass(world.options.leave_seconds - 1, 11);
  EXPECT_TRUE(world.sent.empty());
  world.pass(2, 12);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(world.sent[0].signal, SIGKILL);
}

TEST(Supervision, ADeadCoordinatorIsReplacedAndTheWorkersStay) {
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

TEST(Supervision, ACoordinatorThatIsDeafIsKilled) {
  World world(1);
  world.begin(10);
  world.now += world.options.deaf_seconds - 1;
  world.settle();
  EXPECT_TRUE(world.sent.empty());
  world.now += 2;
  world.settle();
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(world.sent[0], (Action{Kind::send, world.state.coordinator.pid, SIGKILL, 0,
                                   "the coordinator does not answer: it is replaced"}));
}

TEST(Supervision, ACoordinatorThatNeverStartsEndsTheRun) {
  World world(1);
  world.settle();
  for (int i = 0; i < 3; ++i) world.end_coordinator({1, 0});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 1);
  EXPECT_NE(world.finished->why.find("does not start"), std::string::npos);
}

TEST(Supervision, AStopIsToldOnceAndEndsResumable) {
  World world(2);
  world.begin(10);
  stop_asked(world.now, world.state, SIGINT);
  world.settle();
  world.pass(1, 11);
  EXPECT_EQ(world.stops_told, 1);
  EXPECT_TRUE(world.sent.empty());
  world.end_worker(0, {75, 0});
  world.end_worker(0, {75, 0});
  world.end_coordinator({75, 0}, 75);
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 75);
}

TEST(Supervision, ASecondSignalKillsAll) {
  for (const int signal : {SIGINT, SIGTERM}) {
    World world(2);
    world.begin(10);
    stop_asked(world.now, world.state, signal);
    stop_asked(world.now, world.state, signal);
    world.settle();
    ASSERT_TRUE(world.finished);
    EXPECT_EQ(world.finished->code, 128 + signal);
    EXPECT_EQ(world.sent.size(), 3u);
    for (const Action& action : world.sent) EXPECT_EQ(action.signal, SIGKILL);
  }
}

TEST(Supervision, AStopWithNobodyToSaveIsNotCalledResumable) {
  World world(2);
  world.settle();
  stop_asked(world.now, world.state, SIGTERM);
  world.settle();
  world.obey();
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 143);
}

TEST(Supervision, AStopThatTakesTooLongIsForced) {
  World world(2);
  world.begin(10);
  stop_asked(world.now, world.state, SIGINT);
  for (double waited = 0; waited < 2000 && !world.finished; waited += 1) {
    world.pass(1, 10);
    if (!world.sent.empty() && world.sent.back().signal == SIGKILL) world.obey();
  }
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->code, 130);
}

// Whatever happens in whatever order: once the run is over or was stopped it ends in bounded time, everybody living is
// accounted for, and never are there more workers than wanted and leaving together.
TEST(Supervision, EndsWhateverHappens) {
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
        coordinator_told(world.now, world.state, 1 + static_cast<int64_t>(random.below(5)), step, {});
      } else {
        world.tell(step += static_cast<int64_t>(random.below(2)));
      }
      world.settle();
      int64_t staying = 0;
      for (const auto& worker : world.state.workers) staying += worker.asked ? 0 : 1;
      ASSERT_TRUE(world.state.over || staying <= world.state.wanted) << seed;
    }
    if (!world.finished) stop_asked(world.now, world.state, SIGTERM);
    for (double waited = 0; waited < 3000 && !world.finished; waited += 1) {
      world.pass(1, step);
      // SIGTERM is not heard by anybody; only SIGKILL is.
      std::erase_if(world.sent, [](const Action& action) { return action.signal != SIGKILL; });
      world.obey();
    }
    ASSERT_TRUE(world.finished) << seed;
    ASSERT_TRUE(world.state.workers.empty() || world.state.stop_signals >= 2) << seed;
  }
}

}  // namespace
}  // namespace sinew::cli
