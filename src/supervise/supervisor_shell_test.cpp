// Tests what the supervisor's shell does in one turn, even while the coordinator does not answer.
#include "supervise/supervisor_shell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "base/hand_clock.h"

namespace sinew::supervise {
namespace {

constexpr double kAnswerTime = 1;  // a call to a coordinator that does not answer takes this time

struct PretendedProcesses final : RunProcesses {
  pid_t newest = 100;
  std::vector<pid_t> workers;
  std::vector<EndedWorker> ended;
  bool all_killed = false;

  void kill_worker(size_t index) { ended.push_back({workers.at(index), {0, SIGKILL}, {}}); }

  pid_t start_coordinator(int64_t) override { return ++newest; }
  pid_t start_worker(const std::string&, bool) override { return workers.emplace_back(++newest); }
  std::vector<EndedWorker> take_ended_workers() override { return std::exchange(ended, {}); }
  std::optional<ProcessEnd> coordinator_end;
  std::optional<ProcessEnd> take_ended_coordinator() override { return std::exchange(coordinator_end, std::nullopt); }
  std::vector<LaneActivity> activity(pid_t) const override { return {}; }
  bool runs(pid_t) const override { return true; }
  std::vector<std::pair<pid_t, int>> sent;
  void send(pid_t pid, int signal) override { sent.emplace_back(pid, signal); }
  void kill_all() override { all_killed = true; }
  std::vector<int> descriptors() const override { return {}; }
};

struct PretendedCoordinator final : CoordinatorLink {
  explicit PretendedCoordinator(HandClock& clock_given) : clock(clock_given) {}
  HandClock& clock;
  bool answers = true, refuses_losses = false;
  std::vector<cluster::MemberStatus> members;
  std::optional<int64_t> finished;
  int calls = 0, statuses = 0;
  int64_t wanted = 3;
  std::vector<pid_t> lost_pids;
  std::vector<std::string> requests;

  bool call() {
    ++calls;
    if (!answers) clock.seconds = clock.seconds + kAnswerTime;
    return answers;
  }
  bool connect(pid_t) override { return true; }
  void disconnect() override {}
  std::string url() const override { return "http://127.0.0.1:1"; }
  std::optional<cluster::CoordinatorStatus> status() override {
    if (!call()) return std::nullopt;
    ++statuses;
    cluster::CoordinatorStatus status;
    status.wanted = wanted;
    status.members = members;
    status.finished = finished;
    return status;
  }
  bool lost(pid_t worker, const std::string&) override {
    if (!call()) return false;
    lost_pids.push_back(worker);
    return !refuses_losses;
  }
  bool control(const std::string& kind, double, const std::string&) override {
    if (!call()) return false;
    requests.push_back(kind);
    return true;
  }
  std::optional<int64_t> recorded_end(pid_t) override { return std::nullopt; }
  bool recorded = false;
  std::string record_end(int) override {
    recorded = true;
    return "";
  }
};

// A run of three workers that compute.
class SupervisorTurn : public testing::Test {
 protected:
  SupervisorTurn() {
    turn();
    turn();
    EXPECT_EQ(processes_.workers.size(), 3);
    pass(1);
    coordinator_.calls = 0;
  }
  void pass(double seconds) { clock_.seconds = clock_.seconds + seconds; }
  std::optional<int> turn() { return shell_.turn(); }

  HandClock clock_;
  PretendedProcesses processes_;
  PretendedCoordinator coordinator_{clock_};
  std::string lost_;  // what happened to the run's directory
  std::vector<std::string> said_;
  SupervisorShell shell_{{.workers = 3,
                          .most = 4,
                          .host = "here",
                          .say = [this](const std::string& sentence) { said_.push_back(sentence); },
                          .place_lost = [this] { return lost_; }},
                         processes_,
                         coordinator_,
                         clock_};
};

TEST_F(SupervisorTurn, MakesAllItsCallsIfTheCoordinatorAnswers) {
  processes_.kill_worker(0);
  processes_.kill_worker(1);
  shell_.on_signal(SIGUSR1);
  shell_.on_signal(SIGINT);
  turn();
  EXPECT_EQ(coordinator_.lost_pids, (std::vector<pid_t>{processes_.workers[0], processes_.workers[1]}));
  EXPECT_EQ(coordinator_.requests, (std::vector<std::string>{"checkpoint", "stop"}));
  EXPECT_EQ(coordinator_.calls, 5);
}

// Confined workers have the run's secret, and each of them has a share of the memory.
TEST_F(SupervisorTurn, KeepsNoMoreWorkersThanItMay) {
  coordinator_.wanted = 4096;
  for (int i = 0; i < 10; ++i) {
    turn();
    pass(1);
  }
  EXPECT_EQ(processes_.workers.size(), 4U);
  const auto about = [](const std::string& sentence) { return sentence.find("at most the 4") != sentence.npos; };
  EXPECT_EQ(std::ranges::count_if(said_, about), 1);
}

TEST_F(SupervisorTurn, WaitsForOneAnswerAtMostAndSeesASecondStop) {
  coordinator_.answers = false;
  processes_.kill_worker(0);
  processes_.kill_worker(1);
  shell_.on_signal(SIGUSR1);
  shell_.on_signal(SIGINT);
  for (int i = 0; i < 10; ++i) {
    const int calls = coordinator_.calls;
    const double began = clock_.seconds;
    EXPECT_EQ(turn(), std::nullopt);
    EXPECT_LE(coordinator_.calls, calls + 1);
    EXPECT_LE(clock_.seconds, began + kAnswerTime);
    pass(0.05);
  }
  EXPECT_GT(coordinator_.calls, 5) << "it goes on to try";
  const int calls = coordinator_.calls;
  shell_.on_signal(SIGINT);
  pass(0.05);
  EXPECT_EQ(turn(), 128 + SIGINT);
  EXPECT_TRUE(processes_.all_killed);
  EXPECT_LE(coordinator_.calls, calls + 1);
}

TEST_F(SupervisorTurn, MakesUpForCallsWhenTheCoordinatorAnswersAgain) {
  coordinator_.answers = false;
  processes_.kill_worker(0);
  processes_.kill_worker(1);
  shell_.on_signal(SIGUSR1);
  turn();
  coordinator_.answers = true;
  for (int i = 0; i < 3; ++i) {
    pass(0.3);
    turn();
  }
  EXPECT_EQ(coordinator_.lost_pids.size(), 2);
  EXPECT_EQ(coordinator_.requests, (std::vector<std::string>{"checkpoint"}));
}

// The coordinator refuses the report of a loss if the worker had not joined yet.
TEST_F(SupervisorTurn, ARefusalDoesNotHoldUpOtherCalls) {
  coordinator_.refuses_losses = true;
  processes_.kill_worker(0);
  processes_.kill_worker(1);
  const int statuses = coordinator_.statuses;
  turn();
  EXPECT_EQ(coordinator_.lost_pids.size(), 2);
  EXPECT_EQ(coordinator_.statuses, statuses + 1);
  turn();
  EXPECT_EQ(coordinator_.lost_pids.size(), 2) << "they are reported again at the next poll";
  pass(0.3);
  turn();
  EXPECT_EQ(coordinator_.lost_pids.size(), 4);
}

// The signal that stops the run reached all workers at the moment when the run was done.
TEST_F(SupervisorTurn, ARunThatReportedItsEndWasNotStopped) {
  for (const std::optional<int> reported : {std::optional(0), std::optional<int>()}) {
    PretendedProcesses processes;
    SupervisorShell shell({.workers = 1, .host = "here", .reported_end = [&] { return reported; }}, processes,
                          coordinator_, clock_);
    shell.turn();
    shell.turn();
    shell.on_signal(SIGTERM);
    shell.on_signal(SIGTERM);
    EXPECT_EQ(shell.turn(), reported.value_or(128 + SIGTERM));
  }
}

// The leader writes the report before it ends the run. Without the report, somebody else said that the run ended well.
TEST_F(SupervisorTurn, ARunWithoutAReportDidNotEndWell) {
  for (const int said : {0, 3}) {
    for (const std::optional<int> reported : {std::optional(said), std::optional(75), std::optional<int>()}) {
      PretendedProcesses processes;
      std::string last;
      SupervisorShell shell({.workers = 3,
                             .host = "here",
                             .say = [&](const std::string& sentence) { last = sentence; },
                             .reported_end = [&] { return reported; }},
                            processes, coordinator_, clock_);
      shell.turn();
      shell.turn();
      ASSERT_EQ(processes.workers.size(), 3U);
      for (const pid_t worker : processes.workers) processes.ended.push_back({worker, {said, 0}, {}});
      processes.coordinator_end = ProcessEnd{said, 0};
      coordinator_.finished = said;
      std::optional<int> code;
      for (int i = 0; i < 200 && !code; ++i) {
        pass(1);
        code = shell.turn();
      }
      EXPECT_EQ(code, reported.value_or(1));
      if (!reported) {
        EXPECT_NE(last.find("no worker has written its report"), std::string::npos) << last;
      }
      coordinator_.finished.reset();
    }
  }
}

TEST_F(SupervisorTurn, WhatAGuestReportsCountsNot) {
  cluster::MemberStatus guest;
  guest.step = 1LL << 52;
  guest.host = "here";
  guest.pid = processes_.workers[0];
  guest.phase = "leaving";
  guest.token = "0123456789abcdef";
  coordinator_.members = {guest};
  turn();
  pass(100);
  turn();
  EXPECT_TRUE(processes_.sent.empty()) << "the worker with this pid does not leave, so it is not killed";
  guest.token.clear();
  coordinator_.members = {guest};
  pass(1);
  turn();
  pass(100);
  turn();
  EXPECT_FALSE(processes_.sent.empty());
}

TEST_F(SupervisorTurn, EndsTheRunWithinASecondIfItsDirectoryIsLost) {
  EXPECT_EQ(turn(), std::nullopt);
  lost_ = "runs/x was moved or removed";
  pass(1);
  EXPECT_EQ(turn(), 1);
  EXPECT_TRUE(processes_.all_killed);
  EXPECT_NE(said_.back().find("runs/x was moved or removed [RUN_DIRECTORY_LOST]"), std::string::npos) << said_.back();
  EXPECT_FALSE(coordinator_.recorded) << "coordinator.json may be that of another run now";
}

}  // namespace
}  // namespace sinew::supervise
