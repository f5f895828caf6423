// What the kernel says of processes and of the machine, in its files under /proc and /sys.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace sinew {

// Such files have no size, and those of a process that is gone are gone, too. "" where there is none.
std::string kernel_text(const std::string& path, size_t most = 1 << 20);

struct ProcessRow {
  pid_t pid = 0, parent = 0;
  char state = '?';          // R S D T Z ...
  uint64_t started = 0;      // clock ticks since the machine began; with the number it names a process for ever
  uint64_t cpu_ticks = 0;    // used so far
  uint64_t gone_ticks = 0;   // by its children that are gone, and theirs
  int64_t memory_bytes = 0;  // resident
  int64_t threads = 0;
};
// One line of /proc/<pid>/stat; pid 0 where it is none. Pure.
ProcessRow parse_stat(const std::string& text);
// Of any process of this machine; pid 0 once it is gone.
ProcessRow process_row(pid_t pid);

// Every process of this machine (of this process's PID namespace).
std::vector<ProcessRow> all_processes();
// Those below `ancestors`, in any depth, the ancestors not among them. Pure.
std::vector<ProcessRow> below(const std::vector<ProcessRow>& all, const std::set<pid_t>& ancestors);

// Cores this process may run on (its affinity), and how many of them it may use at a time (no more than its cgroup
// allows), at least 1.
std::set<int> own_cores();
int64_t usable_cores();

// Seconds of CPU since the machine began.
struct CpuTimes {
  double busy = 0;  // of some cores, with what other machines took of them
  double own = 0;   // of this process and everything that is or was below it
};
CpuTimes cpu_times(const std::set<int>& cores);
// The first of it, from the text of /proc/stat. Pure.
double busy_seconds(const std::string& stat, const std::set<int>& cores, double ticks_per_second);

std::string boot_id();  // another after each start of the machine; "" where the system does not say

}  // namespace sinew
