// Finds the descendants of a process, or the processes with a mark, in /proc, and kills them.
//
// A process can leave its session, its group and its parent. Below a subreaper it stays a descendant, and /proc shows
// the environment that it started with for its whole life. Every process is signalled through a pidfd after a check
// that it is still the process that was found, because its pid may have been reused.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/proc.h"

namespace sinew::jobs {

// The processes whose initial environment holds SINEW_JOB_ID=<mark>, if this user may read it.
std::vector<ProcessRow> processes_marked(const std::vector<ProcessRow>& all, const std::string& mark);

// Sends SIGKILL to exactly this process. Returns false if it has ended.
bool kill_process(const ProcessRow& row);

// Whether this process has no child, dead or alive. For a subreaper this proves that it has no descendant. The list of
// /proc does not prove it: a process whose parent dies while we read /proc may appear without a parent.
bool has_no_child();

struct KillPlan {
  std::function<std::vector<ProcessRow>()> find;  // the processes to kill
  std::function<void(pid_t)> reap;         // called for each of them that is a child of this process; must not wait
  std::function<bool(int empty)> is_over;  // `empty`: how many times in a row `find` found no process
};
// Kills all that plan.find returns, again and again until plan.is_over returns true. Zombies of other parents do not
// count. Returns false if it took longer than `seconds`.
bool kill_until_gone(const KillPlan& plan, double seconds);
void reap_one(pid_t pid);  // a KillPlan::reap

}  // namespace sinew::jobs
