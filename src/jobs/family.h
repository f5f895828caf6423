// Processes of a family: those descended from one, or carrying its mark, found in /proc and ended.
//
// A process can leave its session, its group and its parent; under a subreaper it can not stop being a descendant, and
// what was put in its environment when it began stays readable there. No process is signalled by its number alone: it
// is held by a descriptor, and was still the one that was found.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/proc.h"

namespace sinew::jobs {

// Those whose environment began with SINEW_JOB_ID=<mark>, as far as this user may read it.
std::vector<ProcessRow> marked(const std::vector<ProcessRow>& all, const std::string& mark);

// SIGKILL to just this process; false: it was gone or is another one now.
bool kill_surely(const ProcessRow& row);

// No child of this process is left, dead or alive. Of a subreaper: nothing below it is left. What /proc shows is no
// proof of that, for who loses its parent while the list is read may be on it as nobody's.
bool has_no_child();

// Kills all that `find` finds, again and again until `is_over` says so (what only waits for its parent does not count).
// `reap` is called for each that is this process's child, and must not wait. False: something was left after `seconds`.
struct Killing {
  std::function<std::vector<ProcessRow>()> find;
  std::function<void(pid_t)> reap;
  // `empty`: how often in a row nothing was found.
  std::function<bool(int empty)> is_over;
};
bool kill_until_gone(const Killing& killing, double seconds);

}  // namespace sinew::jobs
