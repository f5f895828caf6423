// Training by a group: implements train's Reducer over the members of a group, and lets a run join the group.
//
// worker/ uses this code. It is thin: group/ works with floats and bytes, and this code converts tensors to them and
// back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/exit_code.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "train/train.h"

namespace sinew::distribute {

// How this worker's membership ended, for a caller that catches group::Fenced. The destructor of the Membership fills
// it in, or join() if it throws Fenced.
struct MembershipEnd {
  int exit_code = kRejoin;  // see GroupMembers::exit_code_if_fenced
};

struct JoinOptions {
  // The path of coordinator.json. Every new connection reads the file again, because the next coordinator rewrites it.
  std::string coordinator_file;
  std::string listen = "127.0.0.1";                   // where this member's links listen
  std::string advertise;                              // host name for the other members; `listen` if empty
  std::function<void(MemberId)> on_joined = nullptr;  // called with the member that this worker has become
  double pace = 1;                                    // slows every shard down by this factor, for tests
  double patience_seconds = 120;                      // see GroupOptions
  MembershipEnd* ending = nullptr;                    // must outlive the Membership
  // Set: this worker may be elected coordinator, unless it joined by a URL. As coordinator it has the addresses of the
  // links; those of `standby` do not count.
  std::optional<cluster::StandbyOptions> standby;
};

// Joins the run's group. Returns when a view contains this worker. Throws Error if the coordinator refuses the worker.
// When this membership has ended, join() and all calls of its result throw group::Fenced. Then the worker must join
// again as a new process.
std::unique_ptr<train::Membership> join(const JoinOptions& options, const train::Identity& identity, Clock& clock);

}  // namespace sinew::distribute
