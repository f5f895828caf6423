#include "base/resource_use.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/cgroup.h"
#include "base/proc.h"
#include "base/resident_memory.h"

namespace sinew {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

int64_t value_in(const std::string& text, const std::string& key) {
  const size_t at = text.find(key + ": ");
  return at == text.npos ? 0 : std::strtoll(text.c_str() + at + key.size() + 2, nullptr, 10);
}

// The second number of a thread's schedstat: nanoseconds in which it could have run but waited for a core.
double queued_seconds() {
  double nanoseconds = 0;
  std::error_code gone;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator thread("/proc/self/task", gone); !gone && thread != end;
       thread.increment(gone)) {
    const std::string text = kernel_text(thread->path().string() + "/schedstat");
    if (const size_t space = text.find(' '); space != text.npos) nanoseconds += std::atof(text.c_str() + space);
  }
  return 1e-9 * nanoseconds;
}

std::string memory_pressure() {
  for (const std::string& directory : cgroup_directories(kernel_text("/proc/self/cgroup"), "memory")) {
    const std::string text = kernel_text(directory + "/memory.pressure");
    if (!text.empty()) return text;
  }
  return kernel_text("/proc/pressure/memory");
}

// The seconds of a line "some avg10=... total=MICROSECONDS" of a pressure file; `line` is "some" or "full".
double stalled_seconds(const std::string& pressure, const std::string& line) {
  const size_t begin = pressure.find(line + " "), at = pressure.find("total=", begin);
  return begin == pressure.npos || at == pressure.npos ? 0 : 1e-6 * std::atof(pressure.c_str() + at + 6);
}

}  // namespace

ResourceUse resource_use() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const std::string io = kernel_text("/proc/self/io");
  // ru_maxrss also knows what the process was before it became this program: a copy of its parent.
  const int64_t peak = resident_memory().peak;
  const auto own = static_cast<double>(own_cores().size());
  const double quota = cgroup_cores();
  const std::string pressure = memory_pressure();
  return {.cores = quota > 0 ? std::min(own, quota) : own,
          .cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime),
          .queued_seconds = queued_seconds(),
          .throttled_seconds = cgroup_throttled(),
          .major_faults = used.ru_majflt,
          .disk_read_bytes = value_in(io, "\nread_bytes"),
          .disk_written_bytes = value_in(io, "\nwrite_bytes"),
          .peak_memory_bytes = peak > 0 ? peak : used.ru_maxrss * 1024,
          .memory_limit_bytes = static_cast<int64_t>(cgroup_memory()),
          .memory_stalled_seconds = stalled_seconds(pressure, "some"),
          .memory_stopped_seconds = stalled_seconds(pressure, "full")};
}

ResourceUse between(const ResourceUse& earlier, const ResourceUse& later) {
  return {.cores = later.cores,
          .cpu_seconds = later.cpu_seconds - earlier.cpu_seconds,
          .queued_seconds = std::max(0.0, later.queued_seconds - earlier.queued_seconds),  // threads may have ended
          .throttled_seconds = std::max(0.0, later.throttled_seconds - earlier.throttled_seconds),
          .major_faults = later.major_faults - earlier.major_faults,
          .disk_read_bytes = later.disk_read_bytes - earlier.disk_read_bytes,
          .disk_written_bytes = later.disk_written_bytes - earlier.disk_written_bytes,
          .peak_memory_bytes = later.peak_memory_bytes,
          .memory_limit_bytes = later.memory_limit_bytes,
          .memory_stalled_seconds = later.memory_stalled_seconds - earlier.memory_stalled_seconds,
          .memory_stopped_seconds = later.memory_stopped_seconds - earlier.memory_stopped_seconds,
          .seconds = later.seconds - earlier.seconds,
          .network = {later.network.sent_bytes - earlier.network.sent_bytes,
                      later.network.received_bytes - earlier.network.received_bytes}};
}

double waiting_seconds(const ResourceUse& use, double seconds) {
  const double unused = std::max(0.0, use.cores * seconds - use.cpu_seconds);
  return std::min(use.queued_seconds, unused) + use.throttled_seconds;
}

}  // namespace sinew
