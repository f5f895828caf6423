// Limits a command by control groups, version 2 or 1, as far as this process may create them.
//
// Each attempt gets its own group below sinew's group. If version 2 forbids groups below a group that has processes,
// the attempt's group is beside sinew's group. Every rank enters the group before it executes the command. The group is
// removed when it is empty. If no group can enforce a limit, run_command.cpp checks the limit instead, as far as
// possible; Limits::why_not explains this.
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
  std::string unified;                               // version 2; empty if there is no such hierarchy
  std::map<std::string, std::string> by_controller;  // version 1: "memory" -> directory
  bool operator==(const CgroupPaths&) const = default;
};
// Parses the contents of /proc/self/cgroup and /proc/self/mountinfo.
CgroupPaths parse_cgroup_paths(const std::string& cgroup, const std::string& mountinfo);
CgroupPaths own_cgroup_paths();

struct Limits {
  std::vector<std::string> groups;  // directories; every rank enters each of them
  std::set<std::string> enforced;   // those of "memory", "cpus", "pids" that the groups enforce
  // Names the requested limits that no group enforces, and says why and what sinew does instead. Empty if there are
  // none.
  std::string why_not;
};
// Creates the groups. Never throws: if no group can be created, no limit is enforced. The process must have a single
// thread, because the function forks a child to test whether the groups can be entered.
Limits make_groups(const CgroupPaths& paths, const std::string& mark, const spec::ResourceOptions& resources);

int64_t memory_kills(
    // Returns the number of processes that the kernel killed at these groups' limits.
    const std::vector<std::string>& groups);
// Returns the number of processes that the kernel killed since boot because the machine ran out of memory.
int64_t machine_memory_kills();

// A process calls these two functions just before it executes a command. They are async-signal-safe except that they
// handle strings.
bool enter_group(const std::string& group);  // returns false and sets errno if it fails
void prefer_for_memory_killer();

// Returns whether make_groups can have made the group `path` for the attempt with this SINEW_JOB_ID (`mark`). The path
// comes from a file of the run, which may contain anything, so it must be checked.
bool is_group_of(const std::string& path, const std::string& mark);
std::set<pid_t> members_of(const std::vector<std::string>& groups);
void remove_groups(const std::vector<std::string>& groups);  // removes the empty ones

}  // namespace sinew::jobs
