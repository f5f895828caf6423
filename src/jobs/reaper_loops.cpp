#include "jobs/reaper_loops.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/process.h"
#include "jobs/cgroup.h"
#include "jobs/descendants.h"

extern char** environ;

namespace sinew::jobs {
namespace {

// The length of one round of killing. After it the reaper starts another round; it never gives up.
constexpr double kRoundSeconds = 3600;
constexpr int kScanMs = 500;  // the time between two checks, in case the kernel's notification is lost

// Ignores the signals that a user or a launcher may send to all processes of sinew. Only SIGKILL ends a reaper.
void ignore_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU}) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    ::sigaction(signal, &action, nullptr);
  }
  struct sigaction usual {};
  // The parent of sinew may have set SIGCHLD to be ignored. waitpid would then not find the children.
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);
}

// Closes every other descriptor. A pipe does not end while a reaper has its write end open.
void close_all_but(std::vector<int> kept) {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) kept.push_back(standard);
  std::sort(kept.begin(), kept.end());
  unsigned first = 0;
  for (const int descriptor : kept) {
    if (descriptor < 0) continue;
    if (static_cast<unsigned>(descriptor) > first)
      ::syscall(SYS_close_range, first, static_cast<unsigned>(descriptor) - 1, 0);
    first = static_cast<unsigned>(descriptor) + 1;
  }
  ::syscall(SYS_close_range, first, ~0U, 0);
}

// Redirects the standard streams to /dev/null, because the reapers must not keep sinew's terminal or pipes open.
void detach_standard_streams() {
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing < 0) return;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, standard);
  if (nothing > STDERR_FILENO) ::close(nothing);
}

std::vector<ProcessRow> my_descendants() {
  return below(all_processes(), {::getpid()});
}

int signal_descriptor_for_children() {
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  return ::signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
}

// Turns a forked child into a rank. Returns only on failure; `what` then has the kind of the failure.
void become_rank(const RankStart& rank, const AttemptStart& start, pid_t inner, char& what) {
  what = 'F';
  ::setsid();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (::getppid() != inner) ::_exit(1);
  what = 'C';
  for (const std::string& group : start.groups) {
    if (!enter_group(group)) return;
  }
  what = 'F';
  prefer_for_memory_killer();
  forget_signals();
  if (::dup2(rank.output, STDOUT_FILENO) < 0 || ::dup2(rank.errors, STDERR_FILENO) < 0) return;
  std::vector<char*> command, environment;
  for (const std::string& word : rank.command) command.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : rank.environment) environment.push_back(const_cast<char*>(entry.c_str()));
  command.push_back(nullptr);
  environment.push_back(nullptr);
  what = 'D';
  if (!start.workdir.empty() && ::chdir(start.workdir.c_str()) != 0) return;
  what = 'F';
  environ = environment.data();  // so that execvp searches for the program in the command's PATH
  ::execvp(command[0], command.data());
}

class InnerReaper {
 public:
  InnerReaper(const AttemptStart& start, int socket) : start_(start), socket_(socket) {}

  [[noreturn]] void run() {
    ::prctl(PR_SET_NAME, "sinew-inner");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    children_ = signal_descriptor_for_children();
    send({'W', 0, ::getpid()});
    for (size_t rank = 0; rank < start_.ranks.size() && !failed_; ++rank) start_rank(static_cast<int>(rank));
    for (const RankStart& rank : start_.ranks) {
      ::close(rank.output);
      ::close(rank.errors);
    }
    while (!kill_requested_ && !failed_ && !ranks_finished()) turn();
    const auto reap_child = [this](pid_t pid) { reap(pid); };
    while (!kill_until_gone({my_descendants, reap_child, [](int) { return has_no_child(); }}, kRoundSeconds)) {
    }
    if (!orphaned_) send({'G', 0, 0});
    if (orphaned_) remove_groups(start_.groups);
    ::_exit(0);
  }

 private:
  // Returns whether there is nothing more to wait for. A process group that got SIGTERM keeps its grace even if its
  // rank has ended: the rank may be a shell that did not pass the signal on. sinew decides when the grace is over.
  bool ranks_finished() {
    if (ended_ != static_cast<int>(pids_.size())) return false;
    std::erase_if(terminating_, [](pid_t group) { return ::kill(-group, 0) != 0 && errno == ESRCH; });
    return terminating_.empty();
  }

  void send(ReaperMessage message) {
    if (!orphaned_ && ::send(socket_, &message, sizeof message, MSG_NOSIGNAL) < 0 && errno != EINTR)
      orphaned_ = kill_requested_ = true;
  }

  void start_rank(int index) {
    const RankStart& rank = start_.ranks[static_cast<size_t>(index)];
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) return fail(index, 'F', errno);
    const pid_t inner = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      struct {
        int code;
        char what;
      } told{};
      become_rank(rank, start_, inner, told.what);
      told.code = errno;
      [[maybe_unused]] const ssize_t written = ::write(failure[1], &told, sizeof told);
      ::_exit(127);
    }
    const int code = errno;
    ::close(failure[1]);
    struct {
      int code;
      char what;
    } told{};
    ssize_t got = 0;
    if (pid > 0) {
      do got = ::read(failure[0], &told, sizeof told);
      while (got < 0 && errno == EINTR);
    }
    ::close(failure[0]);
    if (pid < 0) return fail(index, 'F', code);
    if (got == sizeof told) return fail(index, told.what, told.code);
    pids_.push_back(pid);
    send({'S', index, 0});
  }

  void fail(int rank, char what, int code) {
    failed_ = true;
    send({what, rank, code});
  }

  void turn() {
    pollfd both[2] = {{socket_, POLLIN, 0}, {children_, POLLIN, 0}};
    ::poll(both, 2, kScanMs);
    signalfd_siginfo ignored;
    while (::read(children_, &ignored, sizeof ignored) > 0) {
    }
    ReaperMessage message;
    ssize_t got = 0;
    while ((got = ::recv(socket_, &message, sizeof message, MSG_DONTWAIT)) == sizeof message) handle(message);
    const bool quiet = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!quiet) orphaned_ = kill_requested_ = true;  // the socket is closed, so sinew has ended
    for (int status = 0;;) {
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) break;
      record_end(pid, status);
    }
  }

  void handle(const ReaperMessage& message) {
    if (message.kind == 'K') kill_requested_ = true;
    if (message.kind != 'T') return;
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      ::kill(-pid, message.value);
      terminating_.push_back(pid);
    }
  }

  void reap(pid_t pid) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) record_end(pid, status);
  }

  // Reports the end of a process if it is a rank. Other processes only need to be reaped.
  void record_end(pid_t pid, int status) {
    const auto found = std::find(pids_.begin(), pids_.end(), pid);
    if (found == pids_.end()) return;
    *found = 0;
    ++ended_;
    send({'E', static_cast<int>(found - pids_.begin()), status});
  }

  const AttemptStart& start_;
  int socket_, children_ = -1;
  std::vector<pid_t> pids_;         // pids of the ranks; 0: ended
  std::vector<pid_t> terminating_;  // process groups that got SIGTERM and still have processes
  int ended_ = 0;
  bool kill_requested_ = false;  // true: sinew has ended, or asked to kill all processes
  bool failed_ = false;          // true: a rank could not be started
  bool orphaned_ = false;        // true: sinew has ended
};

}  // namespace

void run_outer_reaper(const AttemptStart& start, int socket, int pipe) {
  ::setsid();
  ignore_signals();
  detach_standard_streams();
  std::vector<int> kept = start.kept;
  kept.push_back(pipe);
  kept.push_back(socket);
  for (const RankStart& rank : start.ranks) {
    kept.push_back(rank.output);
    kept.push_back(rank.errors);
  }
  close_all_but(kept);
  ::prctl(PR_SET_NAME, "sinew-outer");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int children = signal_descriptor_for_children();
  const pid_t inner = ::fork();
  if (inner == 0) {
    ::close(children);
    ::close(pipe);
    InnerReaper(start, socket).run();
  }
  const ReaperMessage failed{'F', 0, errno};
  if (inner < 0) ::send(socket, &failed, sizeof failed, MSG_NOSIGNAL);
  ::close(socket);
  for (const RankStart& rank : start.ranks) {
    ::close(rank.output);
    ::close(rank.errors);
  }
  // Waits until the inner reaper ends, or until the pipe ends because sinew has died or has called finish().
  bool orphaned = false;
  for (bool watching = inner > 0; watching;) {
    pollfd both[2] = {{pipe, POLLIN, 0}, {children, POLLIN, 0}};
    ::poll(both, 2, kScanMs);
    signalfd_siginfo ignored;
    while (::read(children, &ignored, sizeof ignored) > 0) {
    }
    if ((both[0].revents & (POLLHUP | POLLIN | POLLERR)) != 0) {
      watching = false;
      orphaned = true;
    }
    for (pid_t pid; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;) watching = watching && pid != inner;
  }
  while (!kill_until_gone({my_descendants, reap_one, [](int) { return has_no_child(); }}, kRoundSeconds)) {
  }
  if (orphaned) remove_groups(start.groups);
  ::_exit(0);
}

}  // namespace sinew::jobs
