#include "base/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace sinew {
namespace {

// Signals stay blocked for the rest of a process's life, so each case runs in a child process. The child ignores
// `ignored` and raises `sent`. It succeeds if Signals delivers exactly `heard`.
bool hears(const std::vector<int>& ignored, const std::vector<int>& sent, const std::vector<int>& heard) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(signal, SIG_DFL);
    for (const int signal : ignored) std::signal(signal, SIG_IGN);
    Signals signals({SIGINT, SIGTERM, SIGHUP, SIGUSR1});
    bool good = signals.next() == 0;
    for (const int signal : sent) ::raise(signal);
    for (const int signal : heard) {
      pollfd one{signals.descriptor(), POLLIN, 0};
      good = good && ::poll(&one, 1, 0) == 1 && signals.next() == signal;
    }
    ::_exit(good && signals.next() == 0 ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Signals, AreDeliveredInTheOrderOfTheirNumbers) {
  EXPECT_TRUE(hears({}, {SIGTERM, SIGHUP, SIGINT}, {SIGHUP, SIGINT, SIGTERM}));
  EXPECT_TRUE(hears({}, {SIGUSR1, SIGPIPE}, {SIGUSR1}));
}

TEST(Signals, TerminalSignalsStayIgnored) {
  EXPECT_TRUE(hears({SIGHUP}, {SIGHUP, SIGINT}, {SIGINT}));
  EXPECT_TRUE(hears({SIGINT, SIGHUP}, {SIGHUP, SIGINT}, {}));
}

TEST(Signals, SigtermAndSigusr1AreDeliveredEvenIfIgnored) {
  EXPECT_TRUE(hears({SIGTERM, SIGUSR1}, {SIGTERM, SIGUSR1}, {SIGUSR1, SIGTERM}));
}

// timeout(1) signals a process and then its whole group.
TEST(Signals, OneThatArrivesTwiceForOneRequestIsDeliveredOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    Signals signals({SIGINT, SIGTERM, SIGHUP, SIGUSR1});
    const auto hears_after = [&](int signal) {
      ::raise(signal);
      return signals.next();
    };
    bool good = hears_after(SIGTERM) == SIGTERM && hears_after(SIGTERM) == 0;
    good = good && hears_after(SIGINT) == SIGINT && hears_after(SIGHUP) == SIGHUP && hears_after(SIGHUP) == SIGHUP;
    good = good && hears_after(SIGUSR1) == SIGUSR1 && hears_after(SIGUSR1) == SIGUSR1;
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(RepeatedStops, CountsASignalAgainHalfASecondAfterTheLastThatCounted) {
  RepeatedStops stops;
  EXPECT_FALSE(stops.repeats(SIGTERM, 0));
  EXPECT_TRUE(stops.repeats(SIGTERM, 0.3));
  EXPECT_FALSE(stops.repeats(SIGINT, 0.3)) << "another signal is another request";
  EXPECT_FALSE(stops.repeats(SIGTERM, 0.6)) << "the repetition did not count";
  EXPECT_TRUE(stops.repeats(SIGINT, 0.7));
}

}  // namespace
}  // namespace sinew
