#include "jobs/descendants.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/clock.h"

namespace sinew::jobs {

std::vector<ProcessRow> processes_marked(const std::vector<ProcessRow>& all, const std::string& mark) {
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

bool kill_process(const ProcessRow& row) {
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

void reap_one(pid_t pid) {
  ::waitpid(pid, nullptr, WNOHANG);
}

bool kill_until_gone(const KillPlan& plan, double seconds) {
  const double end = system_clock().monotonic_seconds() + seconds;
  double pause = 0.001;
  for (int empty = 0;;) {
    std::vector<ProcessRow> left = plan.find();
    for (const ProcessRow& row : left) {
      if (row.parent == ::getpid()) {  // this process has not reaped it yet, so no other process can have its pid
        ::kill(row.pid, SIGKILL);
        plan.reap(row.pid);
      } else if (row.state != 'Z') {
        kill_process(row);
      }
    }
    std::erase_if(left, [](const ProcessRow& row) { return row.state == 'Z' && row.parent != ::getpid(); });
    empty = left.empty() ? empty + 1 : 0;
    if (plan.is_over(empty)) return true;
    if (system_clock().monotonic_seconds() >= end) return false;
    system_clock().sleep_seconds(pause);
    pause = std::min(pause * 2, 0.05);
  }
}

}  // namespace sinew::jobs
