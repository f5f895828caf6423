// Finds a shard that kills every worker that computes it: the shard that several dead workers were computing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/activity_board.h"

namespace sinew::supervise {

// A worker's death that the supervisor did not cause.
struct Death {
  std::string how;              // the cause: "SIGSEGV", "an error"
  std::vector<Work> in_flight;  // the shards and evaluation pieces of its lanes
};

// Returns the shards and evaluation pieces that the lanes of a worker compute, according to its activity board.
std::vector<Work> in_flight(const std::vector<LaneActivity>& activity);

// Drops deaths whose shards all belong to steps before `step`, because the run has passed these steps.
void forget_before(int64_t step, std::vector<Death>& deaths);

// Returns the reason for ending the run if the same shard was in flight at `most` or more deaths, else nullopt. A
// worker with several lanes dies with several shards in flight, so the reason names the shards that occur most often.
// SIGKILL counts like other deaths, because the kernel sends it when memory is short. Kills by a user rarely hit the
// same shard `most` times.
std::optional<std::string> deadly_shard_in(const std::vector<Death>& deaths, int64_t most, const std::string& resume);

}  // namespace sinew::supervise
