// What the kernel says of processes and of the machine, in its files under /proc and /sys.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace sinew {

// Such files have no size, and those of a process that is gone are gone, too. "" where there is none.
std::string kernel_text(const std::string& path, size_t most = 1 << 20);

struct ProcessRow {
  pid_t pid = 0, parent = 0;
  char state = '?';          // R S D T Z ...
  uint64_t started = 0;      // clock ticks since the machine began; with the number it names a process for ever
  uint64_t cpu_ticks = 0;    // used so far
  int64_t memory_bytes = 0;  // resident
  int64_t threads = 0;
};
// One line of /proc/<pid>/stat; pid 0 where it is none. Pure.
ProcessRow parse_stat(const std::string& text);
// Of any process of this machine; pid 0 once it is gone.
ProcessRow process_row(pid_t pid);

std::string boot_id();  // another after each start of the machine; "" where the system does not say

}  // namespace sinew
