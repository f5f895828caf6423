#include "base/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"

namespace sinew {
namespace {

constexpr double kLong = 60;  // a time limit for slow machines; a test that passes does not wait so long

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.command = {"/bin/sh", "-c", script};
  return options;
}

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "process-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // Waits for the file's first complete line and returns it.
  std::string line_of(const std::string& name) const {
    const double end = system_clock().monotonic_seconds() + kLong;
    std::string text;
    while (text.find('\n') == std::string::npos && system_clock().monotonic_seconds() < end) {
      std::ifstream file(folder + "/" + name);
      text.assign(std::istreambuf_iterator<char>(file), {});
      system_clock().sleep_seconds(0.002);
    }
    return text.substr(0, text.find('\n'));
  }
  // Returns whether the process does not exist, or is a zombie that its parent has not reaped.
  static bool gone(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    return text.empty() || text.find(") Z ") != std::string::npos;
  }
  static bool gone_in_time(pid_t pid) {
    const double end = system_clock().monotonic_seconds() + kLong;
    while (!gone(pid) && system_clock().monotonic_seconds() < end) system_clock().sleep_seconds(0.002);
    return gone(pid);
  }

  std::string folder;
};

TEST_F(ProcessTest, ReportsHowTheChildEnded) {
  for (const int code : {0, 1, 75, 255}) {
    Process process(shell("exit " + std::to_string(code)));
    EXPECT_EQ(process.wait(kLong), (ProcessEnd{code, 0}));
    EXPECT_EQ(process.wait(), (ProcessEnd{code, 0})) << "for ever after";
  }
  for (const int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGABRT}) {
    Process process(shell("kill -" + std::to_string(signal) + " $$; sleep 600"));
    EXPECT_EQ(process.wait(kLong), (ProcessEnd{0, signal}));
  }
}

TEST_F(ProcessTest, WritesAnEndAsText) {
  EXPECT_EQ(to_string(ProcessEnd{3, 0}), "ended with exit code 3");
  EXPECT_EQ(to_string(ProcessEnd{0, SIGKILL}), "killed by SIGKILL");
  EXPECT_EQ(signal_name(77), "signal 77");
  EXPECT_EQ(stopped_by(SIGINT), "stopped by SIGINT (Ctrl-C)");
  EXPECT_EQ(stopped_by(SIGTERM), "stopped by SIGTERM");
}

TEST_F(ProcessTest, WaitIsBoundedAndReturnsAtTheEnd) {
  Process process(shell("sleep 600"));
  EXPECT_EQ(process.wait(), std::nullopt);
  EXPECT_EQ(process.wait(0.01), std::nullopt);
  process.send(SIGKILL);
  pollfd one{process.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, static_cast<int>(kLong * 1000)), 1);
  EXPECT_EQ(process.wait(), (ProcessEnd{0, SIGKILL}));
  process.send(SIGKILL);  // the child has ended, so no process gets this signal
  process.send_group(SIGKILL);
}

TEST_F(ProcessTest, PassesArgumentsAndVariablesUnchanged) {
  ::setenv("PROCESS_TEST_KEPT", "kept", 1);
  ::setenv("PROCESS_TEST_CHANGED", "before", 1);
  ProcessOptions options;
  options.command = {"/bin/sh", "-c",  "echo \"$1|$2|$PROCESS_TEST_KEPT|$PROCESS_TEST_CHANGED|$NEW\"; cat",
                     "sh",      "a b", "$HOME;'\""};
  options.environment = {{"PROCESS_TEST_CHANGED", "after"}, {"NEW", "x=y z"}};
  options.output = folder + "/out";
  Process process(options);
  EXPECT_EQ(process.wait(kLong), (ProcessEnd{0, 0})) << "cat ends: there is nothing to read";
  EXPECT_EQ(line_of("out"), "a b|$HOME;'\"|kept|after|x=y z");
}

TEST_F(ProcessTest, AppendsBothOutputs) {
  ProcessOptions options = shell("echo one; echo two >&2");
  options.output = folder + "/out";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Process(options).wait(kLong), (ProcessEnd{0, 0}));
  std::ifstream file(folder + "/out");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "one\ntwo\none\ntwo\n");
}

TEST_F(ProcessTest, ThrowsIfTheProgramCannotBeStarted) {
  for (const std::string& program : {folder + "/none", folder, std::string("/etc/passwd")}) {
    ProcessOptions options;
    options.command = {program};
    EXPECT_THROW(Process{options}, Error) << program;
  }
  ProcessOptions options = shell("exit 0");
  options.output = folder + "/none/out";
  EXPECT_THROW(Process{options}, Error);
}

TEST_F(ProcessTest, HasAGroupOfItsOwn) {
  Process process(shell("sleep 600"));
  EXPECT_EQ(::getpgid(process.pid()), process.pid());
  EXPECT_NE(::getpgid(0), process.pid());
}

TEST_F(ProcessTest, KillsItsGroupWhenItEnds) {
  const std::string grandchild = "sleep 600 & echo $! > " + folder + "/";
  Process first(shell(grandchild + "first; wait"));
  const pid_t of_first = std::stoi(line_of("first"));
  first.send(SIGKILL);
  EXPECT_TRUE(first.wait(kLong));
  EXPECT_TRUE(gone_in_time(of_first));
  pid_t child = 0, of_second = 0;
  {
    Process second(shell(grandchild + "second; wait"));
    child = second.pid();
    of_second = std::stoi(line_of("second"));
  }
  EXPECT_TRUE(gone_in_time(child));
  EXPECT_TRUE(gone_in_time(of_second));
}

TEST_F(ProcessTest, MovesWithItsChild) {
  Process first(shell("exit 7"));
  Process second(std::move(first));
  EXPECT_EQ(second.wait(kLong), (ProcessEnd{7, 0}));
  Process third(shell("sleep 600"));
  const pid_t pid = third.pid();
  third = Process(shell("exit 8"));
  EXPECT_TRUE(gone_in_time(pid));
  EXPECT_EQ(third.wait(kLong), (ProcessEnd{8, 0}));
}

TEST_F(ProcessTest, TheDeathSignalComesWhenTheParentDies) {
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ProcessOptions options = shell("echo $$ > " + folder + "/child; exec sleep 600");
    options.death_signal = SIGKILL;
    const Process process(options);
    ::pause();
    ::_exit(0);
  }
  const pid_t child = std::stoi(line_of("child"));
  EXPECT_FALSE(gone(child));
  ::kill(parent, SIGKILL);
  EXPECT_TRUE(gone_in_time(child));
  ::waitpid(parent, nullptr, 0);
}

TEST_F(ProcessTest, FactsMatchTheKernel) {
  Process process(shell("exec sleep 600"));
  ASSERT_TRUE(process_facts(process.pid()));
  EXPECT_EQ(process_facts(process.pid())->parent, ::getpid());
  const auto stopped_in_time = [&](bool wanted) {
    const double end = system_clock().monotonic_seconds() + kLong;
    while (process_facts(process.pid())->stopped != wanted && system_clock().monotonic_seconds() < end)
      system_clock().sleep_seconds(0.002);
    return process_facts(process.pid())->stopped == wanted;
  };
  EXPECT_TRUE(stopped_in_time(false));
  process.send(SIGSTOP);
  EXPECT_TRUE(stopped_in_time(true));
  process.send(SIGKILL);
  EXPECT_TRUE(process.wait(kLong));
  EXPECT_FALSE(process_facts(process.pid()));
}

TEST_F(ProcessTest, UnblocksSignalsInTheChild) {
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, &before);
  Process process(shell("sleep 600"));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  process.send(SIGTERM);
  EXPECT_EQ(process.wait(kLong), (ProcessEnd{0, SIGTERM}));
}

// `ulimit -t` sets the hard limit, too. At this limit the kernel kills with SIGKILL, which alone does not tell the
// cause.
TEST_F(ProcessTest, TheHardLimitOfCpuTimeIsToldFromAKill) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{2, 2};
    ::setrlimit(RLIMIT_CPU, &limit);
    Process killed(shell("kill -KILL $$"));
    Process busy(shell("while :; do :; done"));
    const bool good = killed.wait(kLong) == ProcessEnd{0, SIGKILL} && busy.wait(kLong) == ProcessEnd{0, SIGXCPU};
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace sinew
