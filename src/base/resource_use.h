// What this process has used of the machine since it began, as the kernel counts it.
#pragma once

#include <cstdint>

namespace sinew {

// Bytes that this process has exchanged with other workers, in whole frames.
struct NetworkUse {
  int64_t sent_bytes = 0, received_bytes = 0;
  bool operator==(const NetworkUse&) const = default;
};

struct ResourceUse {
  double cores = 0;              // cores that this process may use at the same time; a quota may allow a part of one
  double cpu_seconds = 0;        // user and system time of all threads
  double queued_seconds = 0;     // time in which threads that live now could have run, but had no core
  double throttled_seconds = 0;  // see cgroup_throttled
  int64_t major_faults = 0;      // pages that had to be read from a disk
  // Bytes that went to and from disks, not to and from the page cache. A write counts when it makes a page dirty.
  int64_t disk_read_bytes = 0, disk_written_bytes = 0;
  int64_t peak_memory_bytes = 0;   // highest resident set so far
  int64_t memory_limit_bytes = 0;  // of the control group; 0: none
  // Time in which at least one thread, and in which all threads, waited for memory: for pages that had been dropped to
  // make room, or for the kernel to free some. Of the control group (v2), else of the machine. 0 if the kernel does not
  // measure it (pressure stall information).
  double memory_stalled_seconds = 0, memory_stopped_seconds = 0;
  // resource_use() does not know these two: its callers have a clock, and the links to other workers.
  double seconds = 0;  // between the two moments
  NetworkUse network;
  // How many of these bytes came in a second; 0 if no time passed.
  double a_second(int64_t bytes) const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
  bool operator==(const ResourceUse&) const = default;
};

// Values that the kernel does not tell are 0.
ResourceUse resource_use();
// Returns the use between two moments; the peak is that of the later one.
ResourceUse between(const ResourceUse& earlier, const ResourceUse& later);

// The seconds in which threads of the process had to wait for a core, because of other programs or of a quota, if it
// used this in `seconds`. Threads of the process also wait for each other, so other programs took at most the cores
// that it did not use.
double waiting_seconds(const ResourceUse& use, double seconds);

}  // namespace sinew
