// Limits on a command by control groups, version 2 or 1, as far as this process may make any.
//
// A group is made for each attempt below sinew's own (or beside it, where version 2 allows no processes in a group that
// has groups), every rank enters it before it becomes the command, and it is removed when nothing is left in it. What
// can not be limited so is watched by run.cpp instead, as far as it can be; `why_not` says what, and why.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::jobs {

// Where this process stands in the hierarchies that are mounted.
struct CgroupPlaces {
  std::string unified;                               // version 2; empty: none
  std::map<std::string, std::string> by_controller;  // version 1: "memory" -> directory
  bool operator==(const CgroupPlaces&) const = default;
};
// From the texts of /proc/self/cgroup and /proc/self/mountinfo. Pure.
CgroupPlaces cgroup_places(const std::string& cgroup, const std::string& mountinfo);
CgroupPlaces cgroup_places_here();

struct Limits {
  std::vector<std::string> groups;  // directories; every rank enters each of them
  std::set<std::string> enforced;   // of "memory", "cpus", "pids"
  std::string why_not;  // of what was asked for and is not enforced, and what is done instead; empty: nothing
};
// Makes the groups, each of which this process may enter. Never throws: without any, nothing is enforced. For a process
// with one thread: it tries with a child.
Limits make_groups(const CgroupPlaces& places, const std::string& mark, const spec::ResourceOptions& resources);

int64_t memory_kills(const std::vector<std::string>& groups);  // processes the kernel ended at these groups' limit
int64_t machine_memory_kills();                                // by the machine's own lack of memory, since it began

// For a process that is about to become a command: async-signal-safe but for the strings.
bool enter_group(const std::string& group);  // false: errno says why
void prefer_for_memory_killer();

// Is it one that make_groups may have made for this mark? A path that somebody wrote into a file may be anything.
bool is_group_of(const std::string& path, const std::string& mark);
std::set<pid_t> members_of(const std::vector<std::string>& groups);
void remove_groups(const std::vector<std::string>& groups);  // those that are empty

}  // namespace sinew::jobs
