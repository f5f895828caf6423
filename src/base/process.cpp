#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/proc.h"

extern char** environ;

namespace sinew {
namespace {

constexpr double kReapSeconds = 10;  // a killed process may first have to finish a write to a slow disk

// An array of C strings as execve takes it. It is built before the fork, because the child must not allocate memory.
struct Row {
  std::vector<std::string> words;
  std::vector<char*> pointers;
  explicit Row(std::vector<std::string> given) : words(std::move(given)) {
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
  }
};

Row environment_row(const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> all = own_environment();
  for (const auto& [name, value] : more) all[name] = value;
  std::vector<std::string> words;
  for (const auto& [name, value] : all) words.push_back(name + "=" + value);
  return Row(std::move(words));
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) != 0)
      throw Error("PROCESS_NOT_STARTED", std::string("cannot create a pipe: ") + std::strerror(errno),
                  hint_of_limit(errno));
    read = both[0];
    write = both[1];
  }
  ~Pipe() {
    ::close(read);
    if (write >= 0) ::close(write);
  }
};

// Runs in the child between fork and exec, so it makes only async-signal-safe calls. Returns only if a call failed;
// then errno tells why.
void become(const Row& command, const Row& environment, const ProcessOptions& options, pid_t parent) {
  ::setpgid(0, 0);
  if (options.death_signal != 0 && ::prctl(PR_SET_PDEATHSIG, options.death_signal) != 0) return;
  if (::getppid() != parent) ::_exit(1);  // the parent died before prctl could take effect
  forget_signals();
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) return;
  if (nothing > STDERR_FILENO) ::close(nothing);
  if (!options.output.empty()) {
    const int file = ::open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0 || ::dup2(file, STDERR_FILENO) < 0) return;
    if (file > STDERR_FILENO) ::close(file);
  }
  ::execve(command.pointers[0], command.pointers.data(), environment.pointers.data());
}

// Returns whether a process that got SIGKILL had used up the hard limit of CPU time. The kernel enforces this limit
// with SIGKILL, the signal that a lack of memory causes, too. end_of reports SIGXCPU instead, which names the cause.
bool used_up_cpu_time(const rusage& used) {
  // The kernel compares the limit with the clock ticks that it charged, but getrusage() returns the exact time. On a
  // busy machine the two differ by some percent.
  constexpr double kLeastShare = 0.8;
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return false;
  double seconds = 0;
  for (const timeval& part : {used.ru_utime, used.ru_stime})
    seconds += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
  return seconds >= kLeastShare * static_cast<double>(limit.rlim_max);
}

ProcessEnd end_of(int status, const rusage& used) {
  if (!WIFSIGNALED(status)) return {WEXITSTATUS(status), 0};
  const int signal = WTERMSIG(status);
  return {0, signal == SIGKILL && used_up_cpu_time(used) ? SIGXCPU : signal};
}

// Waits at most `seconds` until the descriptor is readable. Returns whether it is.
bool readable(int descriptor, double seconds) {
  const double end = system_clock().monotonic_seconds() + seconds;
  for (double left = seconds; left >= 0; left = end - system_clock().monotonic_seconds()) {
    pollfd one{descriptor, POLLIN, 0};
    const int found = ::poll(&one, 1, static_cast<int>(std::ceil(std::min(left, 1e6) * 1000)));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
  return false;
}

}  // namespace

void outlive_parent() {
  ::prctl(PR_SET_PDEATHSIG, 0);
}

void forget_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation != nullptr ? std::string("SIG") + abbreviation : "signal " + std::to_string(signal);
}

std::string stopped_by(int signal) {
  return "stopped by " + signal_name(signal) + (signal == SIGINT ? " (Ctrl-C)" : "");
}

std::optional<ProcessFacts> process_facts(pid_t pid) {
  const ProcessRow row = process_row(pid);
  if (row.pid == 0) return std::nullopt;
  return ProcessFacts{row.parent, row.state == 'T' || row.state == 't'};
}

std::string own_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string to_string(const ProcessEnd& end) {
  return end.signal != 0 ? "killed by " + signal_name(end.signal) : "ended with exit code " + std::to_string(end.code);
}

Process::Process(const ProcessOptions& options) {
  SINEW_CHECK(!options.command.empty(), "a process needs a program");
  const Row command(options.command), environment = environment_row(options.environment);
  Pipe failure;  // a successful exec closes the pipe; if it fails, the child writes errno to the pipe
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0)
    throw Error("PROCESS_NOT_STARTED", std::string("cannot start a process: ") + std::strerror(errno),
                hint_of_limit(errno));
  if (pid_ == 0) {
    become(command, environment, options, parent);
    const int code = errno;
    [[maybe_unused]] const ssize_t told = ::write(failure.write, &code, sizeof code);
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);  // the child makes the same call, because either of the two processes may run first
  ::close(std::exchange(failure.write, -1));
  int code = 0;
  ssize_t got = 0;
  do got = ::read(failure.read, &code, sizeof code);
  while (got < 0 && errno == EINTR);
  descriptor_ = got == 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)) : -1;
  if (descriptor_ >= 0) return;
  if (got == 0) {
    code = errno;
    ::kill(pid_, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  const bool limit = code == EMFILE || code == ENFILE || code == EAGAIN || code == ENOMEM;
  throw Error("PROCESS_NOT_STARTED", "cannot start " + options.command[0] + ": " + std::strerror(code),
              limit ? hint_of_limit(code) : "check that the program exists and is executable");
}

Process::~Process() {
  if (pid_ > 0) {
    send_group(SIGKILL);
    wait(kReapSeconds);
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), descriptor_(std::exchange(other.descriptor_, -1)), end_(other.end_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(end_, other.end_);
  return *this;
}

std::optional<ProcessEnd> Process::wait(double seconds) {
  if (end_ || pid_ <= 0) return end_;
  if (!readable(descriptor_, seconds)) return std::nullopt;
  ::kill(-pid_, SIGKILL);  // the child is not reaped yet, so the pid is still its own
  int status = 0;
  rusage used{};
  pid_t reaped = 0;
  do reaped = ::wait4(pid_, &status, WNOHANG, &used);
  while (reaped < 0 && errno == EINTR);
  if (reaped == pid_) end_ = end_of(status, used);
  // Another part of this process has reaped the child: the part that kills the processes which an attempt left over.
  if (reaped < 0 && errno == ECHILD) end_ = ProcessEnd{0, SIGKILL};
  return end_;
}

void Process::send(int signal) {
  if (pid_ > 0 && !end_) ::kill(pid_, signal);  // not reaped yet, so the pid is still its own
}

void Process::send_group(int signal) {
  if (pid_ > 0 && !end_) ::kill(-pid_, signal);
}

}  // namespace sinew
