// Tests what a crash leaves on the screen, with processes that crash.
#include "report/crash_notice.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/disk.h"
#include "report/report.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

struct Crashed {
  std::string shown;  // on stdout and stderr
  int signal = 0;     // that ended the process
};

// Runs `work` in a process of its own, and waits for the end of that process.
Crashed crashed(const std::function<void(const std::string& run_directory)>& work) {
  testing::TemporaryDirectory directory;
  const std::string file = directory / "shown", run = directory / "a run";
  ::mkdir(run.c_str(), 0700);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, SIG_DFL);
    const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(to, STDOUT_FILENO);
    ::dup2(to, STDERR_FILENO);
    work(run);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {testing::read_file(file), WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

// Begins a run that shows its first progress, and then crashes.
void crash_in_training(const std::string& directory, bool tells_crash, bool terminal,
                       const std::function<void()>& crash) {
  testing::FakeClock clock;
  ReporterOptions options;
  options.directory = directory;
  options.tensorboard = false;
  options.tells_crash = tells_crash;
  if (terminal) options.terminal = [](int) { return Terminal{true, true, false, 80, 24}; };
  Reporter reporter(options, system_disk(), clock);
  reporter.progress({.step = Step(7), .total_steps = 60, .shown = {}});
  crash();
}

TEST(CrashNotice, NamesTheSignalAndTheWayOutBelowTheLiveLine) {
  for (const auto& [signal, name] : {std::pair{SIGSEGV, "SIGSEGV"}, std::pair{SIGFPE, "SIGFPE"},
                                     std::pair{SIGBUS, "SIGBUS"}, std::pair{SIGILL, "SIGILL"}}) {
    const Crashed found = crashed(
        [number = signal](const std::string& run) { crash_in_training(run, true, true, [&] { std::raise(number); }); });
    EXPECT_EQ(found.signal, signal);
    const size_t notice =
        found.shown.find("\x1b[K\nsinew: the training was killed by " + std::string(name) + "\n  try: sinew resume '/");
    EXPECT_NE(notice, std::string::npos) << found.shown;
    EXPECT_TRUE(found.shown.ends_with("/a run'\n")) << found.shown;
  }
}

TEST(CrashNotice, AnAbortAndARealFaultEndTheProcessAsBefore) {
  EXPECT_EQ(crashed([](const std::string& run) { crash_in_training(run, true, true, [] { std::abort(); }); }).signal,
            SIGABRT);
  const Crashed fault = crashed([](const std::string& run) {
    crash_in_training(run, true, true, [] {
      volatile int* nowhere = nullptr;
      *nowhere = 1;
    });
  });
  EXPECT_EQ(fault.signal, SIGSEGV);
  EXPECT_NE(fault.shown.find("killed by SIGSEGV\n"), std::string::npos) << fault.shown;
}

TEST(CrashNotice, NothingIsSaidWithoutALiveLineOrUnderASupervisor) {
  for (const auto& [tells, terminal] : {std::pair{false, true}, std::pair{true, false}}) {
    const Crashed found = crashed([tells = tells, terminal = terminal](const std::string& run) {
      crash_in_training(run, tells, terminal, [] { std::raise(SIGSEGV); });
    });
    EXPECT_EQ(found.signal, SIGSEGV);
    EXPECT_EQ(found.shown.find("sinew"), std::string::npos) << found.shown;
  }
}

void end_by_handler(int) {
  ::_exit(3);
}

TEST(CrashNotice, AHandlerThatIsThereKeepsItsSignal) {
  const Crashed found = crashed([](const std::string& run) {
    std::signal(SIGSEGV, end_by_handler);
    crash_in_training(run, true, true, [] { std::raise(SIGSEGV); });
  });
  EXPECT_EQ(found.signal, 0);
  EXPECT_EQ(found.shown.find("sinew"), std::string::npos) << found.shown;
}

TEST(CrashNotice, EndsWithTheRun) {
  const Crashed found = crashed([](const std::string& run) {
    crash_in_training(run, true, true, [] {});
    std::raise(SIGSEGV);
  });
  EXPECT_EQ(found.signal, SIGSEGV);
  EXPECT_EQ(found.shown.find("killed"), std::string::npos) << found.shown;
}

TEST(CrashNotice, ASecondStopSignalLeavesTheLiveLine) {
  const Crashed found = crashed([](const std::string& run) {
    crash_in_training(run, false, true, [] { leave_live_line(), leave_live_line(), ::_exit(130); });
  });
  EXPECT_TRUE(found.shown.ends_with("\x1b[K\n")) << found.shown;
  EXPECT_FALSE(found.shown.ends_with("\n\n")) << found.shown;
}

}  // namespace
}  // namespace sinew::report
