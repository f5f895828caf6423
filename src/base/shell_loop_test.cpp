#include "base/shell_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/process.h"

namespace sinew {
namespace {

struct Recorder : Shell {
  std::vector<int> signals, wake;
  int turns = 0;
  std::optional<Process> child;
  std::optional<ProcessEnd> end;

  void on_signal(int signal) override { signals.push_back(signal); }
  std::optional<int> turn() override {
    ++turns;
    if (child) end = child->wait();
    if (end || signals.size() == 2) return 7;
    return std::nullopt;
  }
  std::vector<int> descriptors() const override {
    return child ? std::vector<int>{child->descriptor()} : std::vector<int>{};
  }
};

TEST(ShellLoop, DeliversSignalsInOrderBeforeATurn) {
  SignalQueue queue;
  queue.send(SIGUSR1);
  queue.send(SIGTERM);
  Recorder shell;
  EXPECT_EQ(run_shell(shell, queue, 60), 7);
  EXPECT_EQ(shell.signals, (std::vector{SIGUSR1, SIGTERM}));
  EXPECT_EQ(shell.turns, 1);
  EXPECT_EQ(queue.next(), 0);
}

// Turns are an hour apart, so the loop returns only if a descriptor ends its sleep.
TEST(ShellLoop, WakesForASignalOfAnotherThread) {
  SignalQueue queue;
  Recorder shell;
  std::jthread sender([&] {
    queue.send(SIGINT);
    queue.send(SIGINT);
  });
  EXPECT_EQ(run_shell(shell, queue, 3600), 7);
}

TEST(ShellLoop, WakesForTheEndOfAChild) {
  SignalQueue queue;
  Recorder shell;
  ProcessOptions options;
  options.command = {"/bin/sh", "-c", "exit 3"};
  shell.child.emplace(options);
  EXPECT_EQ(run_shell(shell, queue, 3600), 7);
  EXPECT_EQ(shell.end, (ProcessEnd{3, 0}));
}

TEST(SignalQueue, TwoQueuesDoNotDisturbEachOther) {
  SignalQueue one, other;
  one.send(SIGTERM);
  EXPECT_EQ(other.next(), 0);
  EXPECT_EQ(one.next(), SIGTERM);
  EXPECT_EQ(one.next(), 0);
}

TEST(StopRequests, TheSecondIsImmediateUnlessItIsSighup) {
  StopRequests stop;
  EXPECT_FALSE(stop.requested());
  EXPECT_TRUE(stop.add(SIGHUP));
  EXPECT_FALSE(stop.add(SIGHUP));
  EXPECT_FALSE(stop.immediate());
  EXPECT_EQ(stop.signal(), SIGHUP);
  stop.add(SIGTERM);
  EXPECT_FALSE(stop.immediate());
  stop.add(SIGINT);
  EXPECT_TRUE(stop.immediate());
  EXPECT_EQ(stop.signal(), SIGINT);
}

}  // namespace
}  // namespace sinew
