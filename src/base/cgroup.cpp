#include "base/cgroup.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/proc.h"

namespace sinew {
namespace {

// v1 stores a number of this size if there is no limit: the largest whole number of pages.
constexpr uint64_t kUnlimited = uint64_t{1} << 60;

void add_group_and_those_above(const std::string& mount, std::string path, std::vector<std::string>& directories) {
  if (path.find("/..") != path.npos) path.clear();  // it is outside of what this container sees
  while (!path.empty() && path != "/") {
    directories.push_back(mount + path);
    path.resize(path.rfind('/'));
  }
  directories.push_back(mount);
}

bool names(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');) {
    if (one == wanted) return true;
  }
  return false;
}

template <typename Number>
void take_lower(Number value, Number& lowest) {
  if (value > 0 && (lowest <= 0 || value < lowest)) lowest = value;
}

// Returns the number after `key` at the beginning of a line, or 0.
double number_after(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + " ")) return std::atof(line.c_str() + key.size());
  }
  return 0;
}

std::vector<std::string> own_directories(const std::string& controller) {
  return cgroup_directories(kernel_text("/proc/self/cgroup"), controller);
}

}  // namespace

std::vector<std::string> cgroup_directories(const std::string& self, const std::string& controller,
                                            const std::string& mount) {
  std::vector<std::string> directories;
  std::istringstream lines(self);
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/a/b" in v1, "0::/a/b" in v2
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      add_group_and_those_above(mount, path, directories);
    } else if (names(controllers, controller)) {
      add_group_and_those_above(mount + "/" + controller, path, directories);
    }
  }
  return directories;
}

double cgroup_cores(const std::vector<std::string>& directories) {
  double cores = 0;
  for (const std::string& directory : directories) {
    double quota = 0, period = 0;
    // v2 has one file: "150000 100000", or "max 100000" without a limit. v1 has two; a quota of -1 is no limit.
    if (const std::string v2 = kernel_text(directory + "/cpu.max"); !v2.empty()) {
      if (std::sscanf(v2.c_str(), "%lf %lf", &quota, &period) != 2) continue;
    } else {
      quota = std::atof(kernel_text(directory + "/cpu.cfs_quota_us").c_str());
      period = std::atof(kernel_text(directory + "/cpu.cfs_period_us").c_str());
    }
    if (quota > 0 && period > 0) take_lower(quota / period, cores);
  }
  return cores;
}

uint64_t cgroup_memory(const std::vector<std::string>& directories) {
  uint64_t memory = 0;
  for (const std::string& directory : directories) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      // strtoull gives 0 for "max", v2's text for no limit.
      const uint64_t limit = std::strtoull(kernel_text(directory + file).c_str(), nullptr, 10);
      if (limit < kUnlimited) take_lower(limit, memory);
    }
  }
  return memory;
}

double cgroup_throttled(const std::vector<std::string>& directories) {
  double seconds = 0;
  for (const std::string& directory : directories) {
    const std::string text = kernel_text(directory + "/cpu.stat");
    seconds += 1e-6 * number_after(text, "throttled_usec");  // v2
    seconds += 1e-9 * number_after(text, "throttled_time");  // v1
  }
  return seconds;
}

double cgroup_cores() {
  return cgroup_cores(own_directories("cpu"));
}
uint64_t cgroup_memory() {
  return cgroup_memory(own_directories("memory"));
}
double cgroup_throttled() {
  return cgroup_throttled(own_directories("cpu"));
}

}  // namespace sinew
