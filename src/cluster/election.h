// Decides which member becomes the run's coordinator after the coordinator and its supervisor have ended for good.
//
// There are no votes. The lock of the run directory decides (rundir::RunLock): the process that leads a run must hold
// it, the supervisor holds it as long as it lives, and the kernel gives it to one process at a time. A member stands
// for election by trying to take the lock, and leads as long as it holds it. So two members cannot both win, and while
// a supervisor lives, no member can. A member without the run directory cannot stand: it could write nothing there.
//
// Each coordinator has a *term*: its incarnation in coordinator.json, which grows with each coordinator. Members refuse
// the answers of an older term than one that they have heard of, and a coordinator that hears of a newer term steps
// down (coordinator_state.h). This is the rule of Raft's terms. Raft's votes are not needed, because the lock replaces
// them.
//
// All functions are pure and return their reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "cluster/coordinator_info.h"
#include "cluster/view.h"

namespace sinew::cluster {

struct ElectionOptions {
  // A member stands only if no coordinator has answered for this time. A supervisor replaces a dead coordinator within
  // a second, and one that does not answer after 15 s. So an election begins only if no supervisor has replaced the
  // coordinator.
  double wait_seconds = 20;
  // The leader stands first. Each computing member after it waits this much longer than the one before it, but at most
  // `most_delay_seconds` longer than the leader.
  double delay_seconds = 1, most_delay_seconds = 10;
};

// What a member knows when it asks itself whether to stand.
struct Candidate {
  MemberId me;
  std::string secret;        // the secret with which it calls the coordinator
  std::optional<View> view;  // the newest view that it has received
  bool out = false;          // it was told that it is fenced, or that the run is over
  double unled_seconds = 0;  // seconds since a coordinator last answered
  // For how long coordinator.json has named the same coordinator. A coordinator that has just begun gets time to
  // answer.
  double same_file_seconds = 0;
};

struct ElectionStep {
  bool stand = false;
  std::string why;
};
// Decides whether the member tries to take the lock of the run directory now.
ElectionStep next_election_step(const Candidate& candidate, const ElectionOptions& options = {});

// What the run directory says about the run's group: coordinator.json and view.json. A coordinator writes view.json
// before a member receives the view.
struct RunRecord {
  std::optional<CoordinatorInfo> info;  // nullopt: no file, or it cannot be read
  std::optional<View> view;             // nullopt: no file, or it is damaged
};

// Returns why this member may have been left behind by the group, or "" if it is one of those that computed last.
std::string why_not_last(const RunRecord& record, MemberId me);

// Returns why the member must not lead although it holds the lock of the run directory, or "" if it may. The record
// must have been read while it held the lock.
std::string why_not_elected(const Candidate& candidate, const RunRecord& record);

}  // namespace sinew::cluster
