// Training by a group: this room implements train's Reducer over the members of a group, and lets a run join the group.
//
// worker/ uses this room. It is thin: group/ works with floats and bytes, and this room converts tensors to them and
// back.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/exit_code.h"
#include "group/group.h"
#include "train/train.h"

namespace sinew::distribute {

// How this worker's membership ended, for a caller that catches group::Fenced. It is filled in when the Membership is
// destroyed or join() throws.
struct MembershipEnd {
  int exit_code = kRejoin;  // see GroupMembers::exit_code_if_fenced
};

struct JoinOptions {
  // The path of coordinator.json. The file is read again for every connection, because the next coordinator rewrites
  // it.
  std::string coordinator_file;
  std::string listen = "127.0.0.1";  // where this member's links listen
  std::string advertise;             // host name for the other members; `listen` if empty
  double pace = 1;                   // slows every shard down by this factor, for tests
  double patience_seconds = 120;     // see GroupOptions
  MembershipEnd* ending = nullptr;   // must outlive the Membership
};

// Joins the run's group. Returns once a view contains this worker. Throws Error when the coordinator refuses the
// worker. This function and all calls of its result throw group::Fenced once this membership has ended; the
// worker must then join again as a new process.
std::unique_ptr<train::Membership> join(const JoinOptions& options, const train::Identity& identity, Clock& clock);

}  // namespace sinew::distribute
