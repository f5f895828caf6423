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
// `ignored`, raises `sent` and succeeds if Signals delivers exactly `heard`.
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

}  // namespace
}  // namespace sinew
