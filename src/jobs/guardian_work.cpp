#include "jobs/guardian_work.h"

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
#include "jobs/family.h"

extern char** environ;

namespace sinew::jobs {
namespace {

constexpr double kRoundSeconds = 3600;  // of killing; the guardian never gives up, it only begins another round
constexpr int kLookMs = 500;            // between two looks, should a word of the kernel get lost

// Nothing that a person or a launcher sends to sinew's relatives ends them; only SIGKILL does.
void ignore_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU}) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    ::sigaction(signal, &action, nullptr);
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;  // who started sinew may have ignored it, and then nobody could be waited for
  ::sigaction(SIGCHLD, &usual, nullptr);
}

// Everything but these: a pipe that somebody else holds open never ends.
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

// sinew's own terminal or pipe is not held open by those who watch.
void detach_standard_streams() {
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing < 0) return;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, standard);
  if (nothing > STDERR_FILENO) ::close(nothing);
}

std::vector<ProcessRow> my_family() {
  return below(all_processes(), {::getpid()});
}

void reap_one(pid_t pid) {
  ::waitpid(pid, nullptr, WNOHANG);
}

int signal_descriptor_for_children() {
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  return ::signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
}

// A rank between fork and exec. Comes back only when something failed: the kind of it in `what`.
void become_rank(const RankStart& rank, const AttemptStart& start, pid_t guardian, char& what) {
  what = 'F';
  ::setsid();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (::getppid() != guardian) ::_exit(1);
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
  environ = environment.data();  // and the program is looked for along the command's own PATH
  ::execvp(command[0], command.data());
}

class Guardian {
 public:
  Guardian(const AttemptStart& start, int words) : start_(start), words_(words) {}

  [[noreturn]] void run() {
    ::prctl(PR_SET_NAME, "sinew-guardian");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    children_ = signal_descriptor_for_children();
    tell({'W', 0, ::getpid()});
    for (size_t rank = 0; rank < start_.ranks.size() && !failed_; ++rank) start_rank(static_cast<int>(rank));
    for (const RankStart& rank : start_.ranks) {
      ::close(rank.output);
      ::close(rank.errors);
    }
    while (!over_ && !failed_ && !all_ended()) turn();
    const auto bury = [this](pid_t pid) { reap(pid); };
    while (!kill_until_gone({my_family, bury, [](int) { return has_no_child(); }}, kRoundSeconds)) {
    }
    if (!alone_) tell({'G', 0, 0});
    if (alone_) remove_groups(start_.groups);
    ::_exit(0);
  }

 private:
  // All that is to be waited for. Who was asked to end has its grace, also when the shell in front of it did not hear
  // and is gone already; sinew says when the grace is over.
  bool all_ended() {
    if (ended_ != static_cast<int>(pids_.size())) return false;
    std::erase_if(asked_, [](pid_t group) { return ::kill(-group, 0) != 0 && errno == ESRCH; });
    return asked_.empty();
  }

  void tell(Word word) {
    if (!alone_ && ::send(words_, &word, sizeof word, MSG_NOSIGNAL) < 0 && errno != EINTR) alone_ = over_ = true;
  }

  void start_rank(int index) {
    const RankStart& rank = start_.ranks[static_cast<size_t>(index)];
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) return fail(index, 'F', errno);
    const pid_t guardian = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      struct {
        int code;
        char what;
      } told{};
      become_rank(rank, start_, guardian, told.what);
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
    tell({'S', index, 0});
  }

  void fail(int rank, char what, int code) {
    failed_ = true;
    tell({what, rank, code});
  }

  void turn() {
    pollfd both[2] = {{words_, POLLIN, 0}, {children_, POLLIN, 0}};
    ::poll(both, 2, kLookMs);
    signalfd_siginfo ignored;
    while (::read(children_, &ignored, sizeof ignored) > 0) {
    }
    Word word;
    ssize_t got = 0;
    while ((got = ::recv(words_, &word, sizeof word, MSG_DONTWAIT)) == sizeof word) obey(word);
    const bool quiet = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!quiet) alone_ = over_ = true;  // sinew is gone
    for (int status = 0;;) {
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) break;
      note(pid, status);
    }
  }

  void obey(const Word& word) {
    if (word.kind == 'K') over_ = true;
    if (word.kind != 'T') return;
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      ::kill(-pid, word.value);
      asked_.push_back(pid);
    }
  }

  void reap(pid_t pid) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) note(pid, status);
  }

  // Ranks are told of, others only buried.
  void note(pid_t pid, int status) {
    const auto found = std::find(pids_.begin(), pids_.end(), pid);
    if (found == pids_.end()) return;
    *found = 0;
    ++ended_;
    tell({'E', static_cast<int>(found - pids_.begin()), status});
  }

  const AttemptStart& start_;
  int words_, children_ = -1;
  std::vector<pid_t> pids_;   // of the ranks; 0: ended
  std::vector<pid_t> asked_;  // groups that were asked to end, as far as something is in them
  int ended_ = 0;
  bool over_ = false;    // everything is to be killed
  bool failed_ = false;  // a rank could not be started
  bool alone_ = false;   // sinew is gone
};

}  // namespace

void be_warden(const AttemptStart& start, int words, int line) {
  ::setsid();
  ignore_signals();
  detach_standard_streams();
  std::vector<int> kept = start.kept;
  kept.push_back(line);
  kept.push_back(words);
  for (const RankStart& rank : start.ranks) {
    kept.push_back(rank.output);
    kept.push_back(rank.errors);
  }
  close_all_but(kept);
  ::prctl(PR_SET_NAME, "sinew-warden");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int children = signal_descriptor_for_children();
  const pid_t guardian = ::fork();
  if (guardian == 0) {
    ::close(children);
    ::close(line);
    Guardian(start, words).run();
  }
  const Word failed{'F', 0, errno};
  if (guardian < 0) ::send(words, &failed, sizeof failed, MSG_NOSIGNAL);
  ::close(words);
  for (const RankStart& rank : start.ranks) {
    ::close(rank.output);
    ::close(rank.errors);
  }
  // Until sinew is gone, or says by closing the line that it needs no warden any more, or the guardian has ended.
  bool alone = false;
  for (bool watching = guardian > 0; watching;) {
    pollfd both[2] = {{line, POLLIN, 0}, {children, POLLIN, 0}};
    ::poll(both, 2, kLookMs);
    signalfd_siginfo ignored;
    while (::read(children, &ignored, sizeof ignored) > 0) {
    }
    if ((both[0].revents & (POLLHUP | POLLIN | POLLERR)) != 0) {
      watching = false;
      alone = true;
    }
    for (pid_t pid; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;) watching = watching && pid != guardian;
  }
  while (!kill_until_gone({my_family, reap_one, [](int) { return has_no_child(); }}, kRoundSeconds)) {
  }
  if (alone) remove_groups(start.groups);
  ::_exit(0);
}

}  // namespace sinew::jobs
