// Training by a group: the reducer over members, and a run's seat among them.
//
// For worker/. Thin: group/ does the work with floats and bytes, this room turns tensors into those and back.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/exit_code.h"
#include "group/group.h"
#include "train/train.h"

namespace sinew::distribute {

// How this worker's life in the group ended, for whoever catches a group::PutOut: known once the Members are gone.
struct Ending {
  int exit_code = kRejoin;  // the run's, if it is over; kResumable, if this worker was told to leave
};

struct JoinOptions {
  std::string coordinator_file;      // JSON {"url", "secret"}; read anew at every connection: a successor rewrites it
  std::string listen = "127.0.0.1";  // of this member's links
  std::string advertise;             // host the others reach it by; empty: `listen`
  double pace = 1;                   // a shard takes so many times as long as it needs: a slow machine, for tests
  double patience_seconds = 120;     // see GroupOptions
  Ending* ending = nullptr;          // outlives the Members
};

// Joins the run's group: returns once this worker has a seat. Throws Error when refused, group::PutOut when this life
// ends (start another), as do all calls of the result.
std::unique_ptr<train::Members> join(const JoinOptions& options, const train::Identity& identity, Clock& clock);

}  // namespace sinew::distribute
