// Tests what ends the restart loop of one worker, and what makes it start another worker.
#include "supervise/restart_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "base/expected_error.h"

namespace sinew::supervise {
namespace {

const SupervisionOptions kLimits;
const ProcessEnd kFailed{1, 0}, kCutOff{kRejoin, 0}, kKilled{0, SIGKILL}, kCrashed{0, SIGSEGV}, kTerminated{0, SIGTERM};

// Returns the number of such deaths after which the loop gives up, or 0 if it survives a thousand of them.
int deaths_until_the_end(const ProcessEnd& end, double lived_seconds, bool helped = false) {
  Restarts restarts;
  double now = 0;
  for (int deaths = 1; deaths <= 1000; ++deaths) {
    now += lived_seconds;
    const RestartDecision decision = after_end(now, restarts, end, {lived_seconds, helped}, kLimits);
    EXPECT_FALSE(decision.why.empty());
    if (decision.code) {
      EXPECT_EQ(decision.code, 1);
      return deaths;
    }
    EXPECT_LE(restarts.next_start, now + kLimits.longest_delay);
    now = std::max(now, restarts.next_start);
  }
  return 0;
}

TEST(Restarts, WorkersThatDieYoungEndTheLoop) {
  EXPECT_EQ(deaths_until_the_end(kFailed, 1), kLimits.most_failures);
  EXPECT_EQ(deaths_until_the_end(kCrashed, 1), kLimits.most_failures);
  EXPECT_EQ(deaths_until_the_end({127, 0}, 1), kLimits.most_failures);
  EXPECT_EQ(deaths_until_the_end(kKilled, 1), kLimits.most_kills) << "the machine may be short of memory for a while";
}

TEST(Restarts, DeathsFarApartDoNot) {
  for (const ProcessEnd& end : {kFailed, kCrashed, kKilled, ProcessEnd{127, 0}})
    EXPECT_EQ(deaths_until_the_end(end, 3 * kLimits.no_help_seconds), 0) << to_string(end);
}

// A worker without a coordinator tries for no_help_seconds to join, and then ends with an error.
TEST(Restarts, WorkersThatFindNoCoordinatorEndTheLoop) {
  EXPECT_EQ(deaths_until_the_end(kFailed, kLimits.no_help_seconds + 5), kLimits.most_failures);
}

TEST(Restarts, WhatTheWorkerDidNotCauseIsNoFailure) {
  EXPECT_EQ(deaths_until_the_end(kCutOff, 0.1), 0);
  EXPECT_EQ(deaths_until_the_end(kTerminated, 0.1), 0);
}

TEST(Restarts, WorkersThatHelpedTheRunAreNoRow) {
  for (const ProcessEnd& end : {kFailed, kCrashed, kKilled, ProcessEnd{0, SIGXCPU}})
    EXPECT_EQ(deaths_until_the_end(end, 1, true), 0) << to_string(end);
}

TEST(Restarts, ALimitEndsTheLoopHoweverLongTheWorkersLive) {
  for (const int signal : {SIGXCPU, SIGXFSZ})
    EXPECT_EQ(deaths_until_the_end({0, signal}, 3600), kLimits.most_limit_deaths) << signal;
}

TEST(Restarts, StartsThatFailAreTriedForALimitedTime) {
  Restarts restarts;
  double now = 100;
  int sentences = 0;
  while (true) {
    const RestartDecision decision = after_failed_start(now, restarts, "too many processes", kLimits);
    sentences += decision.why.empty() ? 0 : 1;
    if (decision.code) {
      EXPECT_EQ(decision.code, 1);
      EXPECT_NE(decision.why.find("too many processes"), std::string::npos);
      break;
    }
    ASSERT_GT(restarts.next_start, now);
    ASSERT_LE(restarts.next_start, now + kLimits.retry_seconds);
    now = restarts.next_start;
  }
  EXPECT_EQ(sentences, 2) << "the first failure and the end";
  EXPECT_GE(now, 100 + kLimits.no_help_seconds);
}

TEST(Restarts, SomeEndsAreForGood) {
  for (const int code : {kDone, kBudget, kUsage, kResumable}) EXPECT_TRUE(ends_for_good({code, 0})) << code;
  for (const ProcessEnd& end : {kFailed, kCutOff, kKilled, kCrashed}) EXPECT_FALSE(ends_for_good(end));
}

// Runs the loop with shell commands in place of workers.
struct Loop {
  std::vector<std::string> workers;  // commands, in the order of their starts; "": the start fails
  std::vector<bool> later = {};      // the argument of each start
  std::vector<std::string> said = {};
  SignalQueue signals = {};
  size_t stop_at = 100;  // the start at which a stop is requested

  int run() {
    const auto make = [&](bool is_later) {
      const size_t number = later.size();
      later.push_back(is_later);
      if (number == stop_at) signals.send(SIGTERM);
      if (workers.at(number).empty()) throw Error("TEST_FAILED", "no process", "a hint");
      WorkerStart start{task::TaskFile(task::Train{}), {}};
      start.process.command = {"/bin/sh", "-c", workers[number]};
      return start;
    };
    return restart_loop("/no/such/run", make, signals, system_clock(),
                        [&](const std::string& sentence) { said.push_back(sentence); });
  }
};

TEST(RestartLoop, GoesOnAfterFailedStartsAndFailedWorkers) {
  Loop loop{{"exit 1", "", "", "exit 76", "kill -KILL $$", "exit 1", "exit 0"}};
  EXPECT_EQ(loop.run(), 0);
  EXPECT_EQ(loop.later, (std::vector<bool>{false, true, true, true, true, true, true}));
  EXPECT_EQ(std::count(loop.said.begin(), loop.said.end(), "no process; sinew tries again"), 1);
}

TEST(RestartLoop, GivesUpAfterErrorsInARow) {
  Loop loop{{"exit 1", "exit 1", "exit 1", "exit 0"}};
  EXPECT_EQ(loop.run(), 1);
  EXPECT_EQ(loop.later.size(), 3);
}

TEST(RestartLoop, AJobThatCannotBeReadIsFinalAtOnce) {
  Loop loop{{"exit 2", "exit 0"}};
  EXPECT_EQ(loop.run(), 2);
  EXPECT_EQ(loop.later.size(), 1);
}

TEST(RestartLoop, AFirstWorkerThatCannotBeStartedIsAnError) {
  Loop loop{{""}};
  EXPECT_EQ(code_of([&] { loop.run(); }), "TEST_FAILED");
}

TEST(RestartLoop, AStopBetweenTwoWorkersEndsIt) {
  Loop loop{{"exit 76", "", "sleep 1000"}};
  loop.stop_at = 1;
  EXPECT_EQ(loop.run(), kResumable);
  EXPECT_EQ(loop.later.size(), 2) << "no worker is started after the request";
}

}  // namespace
}  // namespace sinew::supervise
