#include "jobs/guardian.h"

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
#include "jobs/family.h"
#include "jobs/guardian_work.h"

namespace sinew::jobs {
namespace {

constexpr int kEmptyLooks = 3;      // in a row, where children can not tell: one may be born while it is looked
constexpr double kEndSeconds = 60;  // for everything to die; a write to a slow disk may have to finish

std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> children;
  for (const ProcessRow& row : all_processes()) {
    if (row.parent == parent) children.insert(row.pid);
  }
  return children;
}

void reap_one(pid_t pid) {
  ::waitpid(pid, nullptr, WNOHANG);
}

std::string listed(const std::vector<ProcessRow>& rows) {
  constexpr size_t kMost = 8;
  std::string text = "pid";
  for (size_t i = 0; i < std::min(rows.size(), kMost); ++i) text += " " + std::to_string(rows[i].pid);
  return text + (rows.size() > kMost ? " ..." : "");
}

// As his own kill() would be.
bool may_be_ended_by(uid_t owner, pid_t pid) {
  if (owner == 0 || owner == ::geteuid()) return true;
  struct stat facts {};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &facts) != 0 || facts.st_uid == owner;
}

}  // namespace

void become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw Error(std::string("cannot watch over a command: ") + std::strerror(errno), "a kernel from 3.4 on is needed");
  std::signal(SIGCHLD, SIG_DFL);  // who started sinew may have ignored it, and then nobody could be waited for
}

Guarded::Guarded(const AttemptStart& start) {
  const std::set<pid_t> before = children_of(::getpid());
  own_children_before_.assign(before.begin(), before.end());
  int words[2], line[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, words) != 0)
    throw Error(std::string("cannot start a command: ") + std::strerror(errno));
  if (::pipe2(line, O_CLOEXEC) != 0) {
    const int code = errno;
    ::close(words[0]);
    ::close(words[1]);
    throw Error(std::string("cannot start a command: ") + std::strerror(code));
  }
  warden_ = ::fork();
  if (warden_ == 0) {
    ::close(words[0]);
    ::close(line[1]);
    be_warden(start, words[1], line[0]);
  }
  const int code = errno;
  ::close(words[1]);
  ::close(line[0]);
  socket_ = words[0];
  warden_line_ = line[1];
  for (const RankStart& rank : start.ranks) {
    ::close(rank.output);
    ::close(rank.errors);
  }
  if (warden_ < 0) no_warden_ = code;
}

Guarded::~Guarded() {
  if (!waited_) {
    kill_all();
    finish(kEndSeconds);
  }
  if (socket_ >= 0) ::close(socket_);
  if (warden_line_ >= 0) ::close(warden_line_);
}

std::optional<GuardianWord> Guarded::next() {
  if (gone_) return std::nullopt;
  if (const int code = std::exchange(no_warden_, 0)) {
    GuardianWord told;
    told.kind = GuardianWord::Kind::no_start;
    told.code = code;
    return told;
  }
  Word word;
  const ssize_t got = ::recv(socket_, &word, sizeof word, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  GuardianWord told;
  if (got != sizeof word) {
    lost_ = gone_ = true;
    return told;
  }
  switch (word.kind) {
    case 'W': guardian_ = word.value; return next();
    case 'S':
      told.kind = GuardianWord::Kind::started;
      told.rank = word.rank;
      break;
    case 'F':
    case 'D':
    case 'C':
      told.kind = GuardianWord::Kind::no_start;
      told.rank = word.rank;
      told.code = word.value;
      told.fault = word.kind == 'D'   ? GuardianWord::Fault::workdir
                   : word.kind == 'C' ? GuardianWord::Fault::group
                                      : GuardianWord::Fault::program;
      break;
    case 'E':
      told.kind = GuardianWord::Kind::ended;
      told.rank = word.rank;
      if (WIFSIGNALED(word.value)) {
        told.end.signal = WTERMSIG(word.value);
      } else {
        told.end.code = WEXITSTATUS(word.value);
      }
      break;
    default: gone_ = true; break;
  }
  return told;
}

void Guarded::send_all(int signal) {
  const Word word{'T', 0, signal};
  if (!gone_) ::send(socket_, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Guarded::kill_all() {
  const Word word{'K', 0, 0};
  if (!gone_) ::send(socket_, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Guarded::force() {
  for (const ProcessRow& row : all_processes()) {
    if (row.pid == warden_ || (guardian_ > 0 && row.pid == guardian_)) kill_surely(row);
  }
}

bool Guarded::finish(double seconds) {
  if (finished_) return true;
  waited_ = true;
  // The warden ends by itself when its line is closed and the guardian is gone. What is left is killed here.
  ::close(std::exchange(warden_line_, -1));
  const std::set<pid_t> before(own_children_before_.begin(), own_children_before_.end());
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
  const auto is_over = [&](int empty) { return has_no_child() || (!before.empty() && empty >= kEmptyLooks); };
  finished_ = kill_until_gone({ours, reap_one, is_over}, seconds);
  return finished_;
}

int sweep(const std::string& mark, std::vector<std::string> groups, uid_t owner, double seconds) {
  std::erase_if(groups, [&](const std::string& group) { return !is_group_of(group, mark); });
  std::set<pid_t> met;
  std::vector<ProcessRow> others;
  const auto left = [&] {
    const std::vector<ProcessRow> all = all_processes();
    std::vector<ProcessRow> rows = marked(all, mark);
    const std::set<pid_t> members = members_of(groups);
    for (const ProcessRow& row : all) {
      if (members.contains(row.pid)) rows.push_back(row);
    }
    const auto not_his =
        std::ranges::stable_partition(rows, [&](const ProcessRow& row) { return may_be_ended_by(owner, row.pid); });
    others.assign(not_his.begin(), not_his.end());
    rows.erase(not_his.begin(), rows.end());
    for (const ProcessRow& row : rows) met.insert(row.pid);
    return rows;
  };
  if (!kill_until_gone({left, reap_one, [](int empty) { return empty >= kEmptyLooks; }}, seconds)) {
    throw Error("processes of an earlier attempt can not be ended: " + listed(left()),
                "end them as who may (sudo kill -9), or wait until the kernel lets them go; then try again");
  }
  if (!others.empty()) {
    throw Error(
        "what looks like an earlier attempt's is of another user than the run and was left alone: " + listed(others),
        "end them if they are the run's (kill -9); then try again");
  }
  remove_groups(groups);
  return static_cast<int>(met.size());
}

}  // namespace sinew::jobs
