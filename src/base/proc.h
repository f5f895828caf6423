// Reads facts about processes and the machine from the kernel's files under /proc and /sys.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace sinew {

// Reads at most `most` bytes of a file under /proc or /sys. These files report no size, and the files of a process
// vanish when it ends. Returns "" if the file cannot be opened.
std::string kernel_text(const std::string& path, size_t most = 1 << 20);

struct ProcessRow {
  pid_t pid = 0, parent = 0;
  char state = '?';          // the state as /proc names it: R running, S sleeping, Z zombie ...
  uint64_t started = 0;      // clock ticks since boot; pid and `started` together identify a process for ever
  uint64_t cpu_ticks = 0;    // CPU time of this process
  uint64_t gone_ticks = 0;   // CPU time of the children that it has reaped, and of their descendants
  int64_t memory_bytes = 0;  // resident set size
  int64_t threads = 0;
};
// Parses the line of /proc/<pid>/stat. The result's pid is 0 if the line is malformed. Pure.
ProcessRow parse_stat(const std::string& text);
// Returns the row of any process of this machine. Its pid is 0 if there is no such process.
ProcessRow process_row(pid_t pid);

// Returns the seconds since the kernel started this process, also under an earlier program of it (execv); 0 if unknown.
double process_age_seconds();

// Returns all processes that this process can see: those of the machine, or of its PID namespace.
std::vector<ProcessRow> all_processes();
// Returns the descendants of `ancestors`, without the ancestors themselves. Pure.
std::vector<ProcessRow> below(const std::vector<ProcessRow>& all, const std::set<pid_t>& ancestors);

// own_cores returns the cores that this process may run on (its affinity). usable_cores returns how many of them it may
// use at the same time, because its cgroup may set a limit; at least 1.
std::set<int> own_cores();
int64_t usable_cores();

// CPU time in seconds.
struct CpuTimes {
  // seconds since boot that the given cores were busy, including the time that the hypervisor gave to other machines
  double busy = 0;
  double own = 0;  // CPU time of this process and of all its past and present descendants
};
CpuTimes cpu_times(const std::set<int>& cores);
// Returns CpuTimes::busy from the text of /proc/stat. Pure.
double busy_seconds(const std::string& stat, const std::set<int>& cores, double ticks_per_second);

std::string boot_id();  // changes at each boot of the machine; "" if unknown

}  // namespace sinew
