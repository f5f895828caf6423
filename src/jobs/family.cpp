#include "jobs/family.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>

#include "base/clock.h"

namespace sinew::jobs {
std::vector<ProcessRow> all_processes() {
  std::vector<ProcessRow> all;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return all;
  while (const dirent* entry = ::readdir(directory)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const ProcessRow row = process_row(std::atoi(entry->d_name));
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
  const std::string entry = "SINEW_JOB_ID=" + mark;
  std::vector<ProcessRow> found;
  for (const ProcessRow& row : all) {
    const std::string environment = kernel_text("/proc/" + std::to_string(row.pid) + "/environ");
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
  const bool same = process_row(row.pid).started == row.started;
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
