// Limits on a command by control groups, version 2 or 1, as far as this process may create them.
//
// Each attempt gets its own group below sinew's group, or beside it if version 2 forbids groups below a group that has
// processes. Every rank enters the group before it executes the command. The group is removed when it is empty. If a
// limit cannot be enforced so, run_command.cpp checks it instead, as far as possible; Limits::why_not explains that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::jobs {

// The directories of this process's own groups in the mounted hierarchies.
struct CgroupPaths {
  std::string unified;                               // version 2; empty: none
  std::map<std::string, std::string> by_controller;  // version 1: "memory" -> directory
  bool operator==(const CgroupPaths&) const = default;
};
// Parses the texts of /proc/self/cgroup and /proc/self/mountinfo. Pure.
CgroupPaths parse_cgroup_paths(const std::string& cgroup, const std::string& mountinfo);
CgroupPaths own_cgroup_paths();

struct Limits {
  std::vector<std::string> groups;  // directories; every rank enters each of them
  std::set<std::string> enforced;   // some of "memory", "cpus", "pids"
  std::string why_not;  // which requested limits no group enforces, why, and what sinew does instead; empty: none
};
// Creates the groups. Never throws: if no group can be created, no limit is enforced. The caller needs a single thread,
// because the function tests with a forked child whether the groups can be entered.
Limits make_groups(const CgroupPaths& paths, const std::string& mark, const spec::ResourceOptions& resources);

int64_t memory_kills(
    const std::vector<std::string>& groups);  // processes that the kernel killed at these groups' limits
int64_t machine_memory_kills();  // processes that the kernel killed since boot because the machine ran out of memory

// For a process that is about to execute a command. Async-signal-safe except for the strings.
bool enter_group(const std::string& group);  // false: errno says why
void prefer_for_memory_killer();

// Whether make_groups may have created this path for this mark. A path from a file of the run may be anything.
bool is_group_of(const std::string& path, const std::string& mark);
std::set<pid_t> members_of(const std::vector<std::string>& groups);
void remove_groups(const std::vector<std::string>& groups);  // removes the empty ones

}  // namespace sinew::jobs
