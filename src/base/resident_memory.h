// The memory that a process has, as the kernel counts it.
#pragma once

#include <cstdint>
#include <string>

namespace sinew {

// From /proc/PID/status. Values that the kernel does not tell are 0. The kernel can read the pages of files again: it
// takes those away when memory gets scarce, and ends no process for their sake.
struct ResidentMemory {
  int64_t peak = 0;        // VmHWM: the most that was resident at a time, files included
  int64_t files = 0;       // RssFile: resident pages of files now
  int64_t held = 0;        // RssAnon and RssShmem: everything else that is resident now
  int64_t data_space = 0;  // VmData: what RLIMIT_DATA limits
};
ResidentMemory resident_memory(const std::string& status);  // pure
ResidentMemory resident_memory();                           // of this process

}  // namespace sinew
