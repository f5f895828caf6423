#include "jobs/reapers.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "jobs/cgroup.h"
#include "jobs/descendants.h"
#include "jobs/reaper_loops.h"

namespace sinew::jobs {
namespace {

// This many scans in a row that find no process count as proof. One scan is not enough, because a process may be
// created while /proc is scanned.
constexpr int kEmptyScans = 3;
constexpr double kEndSeconds = 60;  // how long killed processes may take to end: they may have to finish a slow write

std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> children;
  for (const ProcessRow& row : all_processes()) {
    if (row.parent == parent) children.insert(row.pid);
  }
  return children;
}

std::string listed(const std::vector<ProcessRow>& rows) {
  constexpr size_t kMost = 8;
  std::string text = "pid";
  for (size_t i = 0; i < std::min(rows.size(), kMost); ++i) text += " " + std::to_string(rows[i].pid);
  return text + (rows.size() > kMost ? " ..." : "");
}

// Returns whether sweep() may try to kill process `pid` for `owner`. If `owner` is root or the user of this process,
// it always may try, because the kernel refuses what is not allowed. Otherwise the process must belong to `owner`, or
// have ended.
bool may_kill(uid_t owner, pid_t pid) {
  if (owner == 0 || owner == ::geteuid()) return true;
  struct stat facts {};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &facts) != 0 || facts.st_uid == owner;
}

ReaperEvent event_of(const ReaperMessage& message) {
  ReaperEvent event;
  event.rank = message.rank;
  switch (message.kind) {
    case 'S': event.kind = ReaperEvent::Kind::started; break;
    case 'F':
    case 'D':
    case 'C':
      event.kind = ReaperEvent::Kind::no_start;
      event.code = message.value;
      event.fault = message.kind == 'D'   ? ReaperEvent::Fault::workdir
                    : message.kind == 'C' ? ReaperEvent::Fault::group
                                          : ReaperEvent::Fault::program;
      break;
    case 'E':
      event.kind = ReaperEvent::Kind::ended;
      if (WIFSIGNALED(message.value)) {
        event.end.signal = WTERMSIG(message.value);
      } else {
        event.end.code = WEXITSTATUS(message.value);
      }
      break;
    default: event.kind = ReaperEvent::Kind::gone; break;
  }
  return event;
}

Error no_resources(int code) {
  return {"JOBS_NO_RESOURCES", std::string("cannot start a command: ") + std::strerror(code),
          "the limit of open files may be reached: see ulimit -n"};
}

}  // namespace

RankProcesses::RankProcesses(const AttemptStart& start) {
  const std::set<pid_t> before = children_of(::getpid());
  earlier_children_.assign(before.begin(), before.end());
  int socket[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socket) != 0) throw no_resources(errno);
  if (::pipe2(pipe, O_CLOEXEC) != 0) {
    const int code = errno;
    ::close(socket[0]);
    ::close(socket[1]);
    throw no_resources(code);
  }
  outer_reaper_ = ::fork();
  if (outer_reaper_ == 0) {
    ::close(socket[0]);
    ::close(pipe[1]);
    run_outer_reaper(start, socket[1], pipe[0]);
  }
  const int code = errno;
  ::close(socket[1]);
  ::close(pipe[0]);
  socket_ = socket[0];
  outer_pipe_ = pipe[1];
  for (const RankStart& rank : start.ranks) {
    ::close(rank.output);
    ::close(rank.errors);
  }
  if (outer_reaper_ < 0) fork_error_ = code;
}

RankProcesses::~RankProcesses() {
  if (!waited_) {
    kill_all();
    finish(kEndSeconds);
  }
  if (socket_ >= 0) ::close(socket_);
  if (outer_pipe_ >= 0) ::close(outer_pipe_);
}

std::optional<ReaperEvent> RankProcesses::next() {
  if (gone_) return std::nullopt;
  ReaperEvent event;
  if (const int code = std::exchange(fork_error_, 0)) {
    event.kind = ReaperEvent::Kind::no_start;
    event.code = code;
    return event;
  }
  ReaperMessage message;
  const ssize_t got = ::recv(socket_, &message, sizeof message, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got != sizeof message) {
    lost_ = gone_ = true;
    return event;
  }
  if (message.kind == 'W') {
    inner_reaper_ = message.value;
    return next();
  }
  event = event_of(message);
  gone_ = event.kind == ReaperEvent::Kind::gone;
  return event;
}

void RankProcesses::signal_ranks(int signal) {
  const ReaperMessage message{'T', 0, signal};
  if (!gone_) ::send(socket_, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void RankProcesses::kill_all() {
  const ReaperMessage message{'K', 0, 0};
  if (!gone_) ::send(socket_, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void RankProcesses::kill_reapers() {
  for (const ProcessRow& row : all_processes()) {
    if (row.pid == outer_reaper_ || (inner_reaper_ > 0 && row.pid == inner_reaper_)) kill_process(row);
  }
}

bool RankProcesses::finish(double seconds) {
  if (finished_) return true;
  waited_ = true;
  // Closing the pipe makes the outer reaper exit after the inner one. This process then kills what is left.
  ::close(std::exchange(outer_pipe_, -1));
  const std::set<pid_t> before(earlier_children_.begin(), earlier_children_.end());
  const auto ours = [&] {
    const std::vector<ProcessRow> all = all_processes();
    std::set<pid_t> mine;
    for (const ProcessRow& row : all) {
      if (row.parent == ::getpid() && !before.contains(row.pid)) mine.insert(row.pid);
    }
    std::vector<ProcessRow> rows = below(all, mine);
    for (const ProcessRow& row : all) {
      if (mine.contains(row.pid)) rows.push_back(row);
    }
    return rows;
  };
  const auto is_over = [&](int empty) { return has_no_child() || (!before.empty() && empty >= kEmptyScans); };
  finished_ = kill_until_gone({ours, reap_one, is_over}, seconds);
  return finished_;
}

int sweep(const std::string& mark, std::vector<std::string> groups, uid_t owner, double seconds) {
  std::erase_if(groups, [&](const std::string& group) { return !is_group_of(group, mark); });
  std::set<pid_t> killed;
  std::vector<ProcessRow> others;
  const auto left = [&] {
    const std::vector<ProcessRow> all = all_processes();
    std::vector<ProcessRow> rows = processes_marked(all, mark);
    const std::set<pid_t> members = members_of(groups);
    for (const ProcessRow& row : all) {
      if (members.contains(row.pid)) rows.push_back(row);
    }
    const auto foreign =
        std::ranges::stable_partition(rows, [&](const ProcessRow& row) { return may_kill(owner, row.pid); });
    others.assign(foreign.begin(), foreign.end());
    rows.erase(foreign.begin(), rows.end());
    for (const ProcessRow& row : rows) killed.insert(row.pid);
    return rows;
  };
  if (!kill_until_gone({left, reap_one, [](int empty) { return empty >= kEmptyScans; }}, seconds)) {
    throw Error("JOBS_PROCESSES_LEFT", "processes of an earlier attempt cannot be killed: " + listed(left()),
                "kill them as root (sudo kill -9), or wait until their system calls return; then try again");
  }
  if (!others.empty()) {
    throw Error(
        "JOBS_PROCESSES_LEFT",
        "processes with the mark of an earlier attempt belong to another user and were not killed: " + listed(others),
        "kill them (kill -9) if they belong to the run; then try again");
  }
  remove_groups(groups);
  return static_cast<int>(killed.size());
}

}  // namespace sinew::jobs
