// Finds and kills processes through /proc: the descendants of a process, or all processes that started with a given
// SINEW_JOB_ID (the mark) in their environment.
//
// A process can leave its session, its group and its parent. But below a subreaper it stays a descendant. As long as it
// lives, /proc also shows the environment with which it started. A pid may be reused. This code therefore signals a
// process only through a pidfd, and only after it has checked that the pidfd refers to the process that it found.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/proc.h"

namespace sinew::jobs {

// Returns the processes whose initial environment contains SINEW_JOB_ID=<mark>, as far as this user may read it.
std::vector<ProcessRow> processes_marked(const std::vector<ProcessRow>& all, const std::string& mark);

// Sends SIGKILL to exactly this process. Returns false if it has ended.
bool kill_process(const ProcessRow& row);

// Returns whether this process has no child, dead or alive. For a subreaper this proves that it has no descendant. A
// scan of /proc proves less: a process whose parent dies during the scan may appear without a parent.
bool has_no_child();

struct KillPlan {
  std::function<std::vector<ProcessRow>()> find;  // the processes to kill
  std::function<void(pid_t)> reap;                // called for each found child of this process; must not block
  std::function<bool(int empty)> is_over;  // `empty` is the number of scans in a row in which `find` found no process
};
// Kills all processes that plan.find returns, and repeats this until plan.is_over returns true. Ignores zombies that
// have another parent. Returns false if it takes longer than `seconds`.
bool kill_until_gone(const KillPlan& plan, double seconds);
void reap_one(pid_t pid);  // the function for KillPlan::reap that waits for the process

}  // namespace sinew::jobs
