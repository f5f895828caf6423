#include "supervise/watchdog.h"

#include <gtest/gtest.h>

namespace sinew::supervise {
namespace {

constexpr Work kShard = {Work::Kind::computing, 9, 3, 0, 96, 32};

// A simulated run of some workers that is checked every half second.
struct WatchedRun {
  Watchdog watchdog;
  WatchdogOptions options;
  double now = 50;
  int64_t step = 0;
  std::vector<WatchedWorker> workers;
  std::vector<std::string> said;
  std::vector<Standstill::Holder> ended;

  explicit WatchedRun(int count) {
    for (int i = 1; i <= count; ++i) workers.push_back({i, "worker " + std::to_string(i), false, {}});
  }
  void note(size_t worker, const Work& work) {
    auto& activity = workers.at(worker).activity;
    activity = {{0, activity.empty() ? 1 : activity[0].sequence + 1, work}};
  }
  void pass(double seconds) {
    for (const double end = now + seconds; now < end;) {
      now += 0.5;
      const Standstill found = look_for_standstill(now, watchdog, step, workers, options);
      if (!found.sentence.empty()) said.push_back(found.sentence);
      ended.insert(ended.end(), found.to_end.begin(), found.to_end.end());
    }
  }
  void make_steps(int count, double seconds) {
    for (int i = 0; i < count; ++i) {
      ++step;
      for (size_t w = 0; w < workers.size(); ++w) note(w, {Work::Kind::reducing, step});
      pass(seconds);
    }
  }
};

TEST(Watchdog, NamesThenEndsAWorkerThatIsStuckAtAShard) {
  WatchedRun run(3);
  run.make_steps(9, 1);
  run.note(1, kShard);
  run.pass(59);
  EXPECT_TRUE(run.said.empty());
  run.pass(2);
  EXPECT_EQ(run.said, std::vector<std::string>{"nothing has moved for 60 s after step 9: worker 2 is at step 9, "
                                               "shard 3 (samples 96 to 127 in the order of epoch 0)"});
  run.pass(28);
  EXPECT_TRUE(run.ended.empty());
  run.pass(2);
  ASSERT_FALSE(run.ended.empty());
  EXPECT_EQ(run.ended[0].pid, 2);
  EXPECT_EQ(run.ended[0].why, "it has been at step 9, shard 3 (samples 96 to 127 in the order of epoch 0) for 90 s");
  EXPECT_EQ(run.said.size(), 1u) << "once a standstill";
}

// A disk that does not answer blocks the leader between two steps.
TEST(Watchdog, EndsAWorkerThatIsStuckRecordingAStep) {
  WatchedRun run(3);
  run.make_steps(9, 1);
  run.note(0, {Work::Kind::recording, 9});
  run.pass(95);
  EXPECT_EQ(run.said, std::vector<std::string>{"nothing has moved for 60 s after step 9: worker 1 is at step 9, its "
                                               "records"});
  ASSERT_FALSE(run.ended.empty());
  EXPECT_EQ(run.ended[0].pid, 1);
}

TEST(Watchdog, WaitsLongerIfStepsAreSlow) {
  WatchedRun run(2);
  run.make_steps(6, 30);
  run.note(0, kShard);
  run.pass(30 * 20 - 40);
  EXPECT_TRUE(run.said.empty());
  run.pass(60);
  EXPECT_EQ(run.said.size(), 1u);
}

TEST(Watchdog, FindsNothingBeforeTheFirstStep) {
  WatchedRun run(2);
  run.note(0, kShard);
  run.pass(5000);
  EXPECT_TRUE(run.said.empty());
}

// All steps may have been made between two checks. The usual time of a step is then unknown.
TEST(Watchdog, WaitsTenTimesLongerUntilTheUsualStepTimeIsKnown) {
  WatchedRun run(2);
  run.make_steps(1, 1);
  run.note(0, kShard);
  run.pass(590);
  EXPECT_TRUE(run.said.empty());
  run.pass(20);
  EXPECT_EQ(run.said.size(), 1u);
  run.pass(270);
  EXPECT_TRUE(run.ended.empty());
  run.pass(30);
  EXPECT_FALSE(run.ended.empty());
}

TEST(Watchdog, NewWorkIsProgressEvenWithoutAStep) {
  WatchedRun run(2);
  run.make_steps(9, 1);
  for (int piece = 0; piece < 100; ++piece) {
    run.note(0, {Work::Kind::evaluating, 9, piece, 0, piece, 1});
    run.pass(40);
  }
  EXPECT_TRUE(run.said.empty());
  run.pass(61);
  EXPECT_NE(run.said.at(0).find("worker 1 is at evaluation at step 9, piece 99 (sample 99)"), std::string::npos)
      << run.said[0];
}

TEST(Watchdog, WorkersThatPostNoWorkAreNoProgress) {
  WatchedRun run(2);
  run.make_steps(9, 1);
  run.note(0, kShard);
  for (int i = 0; i < 4; ++i) {
    run.pass(20);
    run.workers[1] = {100 + i, "worker " + std::to_string(3 + i), false, {}};
  }
  EXPECT_EQ(run.said.size(), 1u);
}

TEST(Watchdog, FindsNothingWhileAWorkerIsStopped) {
  WatchedRun run(2);
  run.make_steps(9, 1);
  run.note(1, kShard);
  run.workers[1].stopped = true;
  run.pass(5000);
  EXPECT_TRUE(run.said.empty());
  run.workers[1].stopped = false;
  run.pass(59);
  EXPECT_TRUE(run.said.empty()) << "counted from when it goes on";
  run.pass(2);
  EXPECT_EQ(run.said.size(), 1u);
}

TEST(Watchdog, ALongPauseOfTheSupervisorIsNoStandstill) {
  WatchedRun run(2);
  run.make_steps(9, 1);
  run.note(1, kShard);
  run.pass(10);
  run.now += 4000;  // as if a laptop was closed
  run.pass(10);
  EXPECT_TRUE(run.said.empty());
}

TEST(Watchdog, EndsNoWorkerIfNoneHasWork) {
  WatchedRun run(2);
  run.make_steps(9, 1);
  run.note(1, {});
  run.pass(500);
  EXPECT_EQ(run.said, std::vector<std::string>{"nothing has moved for 60 s after step 9: no worker of this machine has "
                                               "work; sinew ps shows all members"});
  EXPECT_TRUE(run.ended.empty());
}

TEST(Watchdog, ReportsASecondStandstill) {
  WatchedRun run(1);
  run.make_steps(9, 1);
  run.note(0, kShard);
  run.pass(65);
  run.make_steps(1, 1);
  run.note(0, kShard);
  run.pass(4000);
  EXPECT_EQ(run.said.size(), 2u);
}

}  // namespace
}  // namespace sinew::supervise
