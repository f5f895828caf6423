#include "jobs/family.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/clock.h"

namespace sinew::jobs {
namespace {

// Files of /proc have no size; a process that is gone has no files.
std::string read_small(const std::string& path, size_t most) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  text.resize(most);
  size_t got = 0;
  while (got < most) {
    const ssize_t more = ::read(file, text.data() + got, most - got);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    got += static_cast<size_t>(more);
  }
  ::close(file);
  text.resize(got);
  return text;
}

std::string proc(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

ProcessRow row_of(pid_t pid) {
  return parse_stat(read_small(proc(pid, "stat"), 4096));
}

}  // namespace

ProcessRow parse_stat(const std::string& text) {
  ProcessRow row;
  const size_t name_end = text.rfind(')');  // "pid (name) state parent ..."; a name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return row;
  int parent = 0;
  unsigned long long user = 0, system = 0, started = 0;
  long long threads = 0, pages = 0;
  const int found =
      std::sscanf(text.c_str() + name_end + 2,
                  "%c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %lld %*d %llu %*u %lld",
                  &row.state, &parent, &user, &system, &threads, &started, &pages);
  if (found != 7) return {};
  row.pid = std::atoi(text.c_str());
  row.parent = parent;
  row.started = started;
  row.cpu_ticks = user + system;
  row.memory_bytes = pages * ::sysconf(_SC_PAGESIZE);
  row.threads = threads;
  return row;
}

std::vector<ProcessRow> all_processes() {
  std::vector<ProcessRow> all;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return all;
  while (const dirent* entry = ::readdir(directory)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const ProcessRow row = row_of(std::atoi(entry->d_name));
    if (row.pid > 0) all.push_back(row);
  }
  ::closedir(directory);
  return all;
}

std::vector<ProcessRow> below(const std::vector<ProcessRow>& all, const std::set<pid_t>& ancestors) {
  std::multimap<pid_t, const ProcessRow*> children;
  for (const ProcessRow& row : all) children.emplace(row.parent, &row);
  std::set<pid_t> seen = ancestors;
  std::vector<pid_t> open(ancestors.begin(), ancestors.end());
  std::vector<ProcessRow> found;
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (auto [child, end] = children.equal_range(parent); child != end; ++child) {
      if (!seen.insert(child->second->pid).second) continue;
      found.push_back(*child->second);
      open.push_back(child->second->pid);
    }
  }
  return found;
}

std::vector<ProcessRow> marked(const std::vector<ProcessRow>& all, const std::string& mark) {
  constexpr size_t kMostEnvironment = 1 << 20;
  const std::string entry = "SINEW_JOB_ID=" + mark;
  std::vector<ProcessRow> found;
  for (const ProcessRow& row : all) {
    const std::string environment = read_small(proc(row.pid, "environ"), kMostEnvironment);
    for (size_t at = 0; (at = environment.find(entry, at)) != std::string::npos; at += entry.size()) {
      const size_t end = at + entry.size();
      const bool begins = at == 0 || environment[at - 1] == '\0';
      if (!begins || (end < environment.size() && environment[end] != '\0')) continue;
      found.push_back(row);
      break;
    }
  }
  return found;
}

bool kill_surely(const ProcessRow& row) {
  const int held = static_cast<int>(::syscall(SYS_pidfd_open, row.pid, 0));
  if (held < 0) return false;
  const bool same = row_of(row.pid).started == row.started;
  const bool sent = same && ::syscall(SYS_pidfd_send_signal, held, SIGKILL, nullptr, 0) == 0;
  ::close(held);
  return sent;
}

bool has_no_child() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
}

bool kill_until_gone(const Killing& killing, double seconds) {
  const double end = system_clock().monotonic_seconds() + seconds;
  double pause = 0.001;
  for (int empty = 0;;) {
    std::vector<ProcessRow> left = killing.find();
    for (const ProcessRow& row : left) {
      if (row.parent == ::getpid()) {  // its number is its own until it is reaped here
        ::kill(row.pid, SIGKILL);
        killing.reap(row.pid);
      } else if (row.state != 'Z') {
        kill_surely(row);
      }
    }
    std::erase_if(left, [](const ProcessRow& row) { return row.state == 'Z' && row.parent != ::getpid(); });
    empty = left.empty() ? empty + 1 : 0;
    if (killing.is_over(empty)) return true;
    if (system_clock().monotonic_seconds() >= end) return false;
    system_clock().sleep_seconds(pause);
    pause = std::min(pause * 2, 0.05);
  }
}

}  // namespace sinew::jobs
