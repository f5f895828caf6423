// Reads what the kernel's control groups (cgroup v1 and v2) allow this process. A limit of any group above the process
// counts, as far as the process can see these groups: a container often sees only its own, as the root.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinew {

// Returns the directories of the process's group and of the groups above it, the own one first. `self` is the text of
// /proc/self/cgroup. v1 has a hierarchy for each controller, such as "cpu" or "memory"; v2 has one. Pure.
std::vector<std::string> cgroup_directories(const std::string& self, const std::string& controller,
                                            const std::string& mount = "/sys/fs/cgroup");

// 0: there is no limit. The lowest one counts. They read files, so do not call them in each step.
double cgroup_cores(const std::vector<std::string>& directories);     // CPU quota divided by its period
uint64_t cgroup_memory(const std::vector<std::string>& directories);  // bytes
// Returns the seconds for which the kernel kept these groups from running because a CPU quota was used up. They add up
// over all CPUs and groups, since the groups were made.
double cgroup_throttled(const std::vector<std::string>& directories);

// The same for this process.
double cgroup_cores();
uint64_t cgroup_memory();
double cgroup_throttled();

}  // namespace sinew
