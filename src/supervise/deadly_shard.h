// Finds a shard that kills every worker that computes it, from the shards that dead workers had in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/activity_board.h"

namespace sinew::supervise {

// A worker's death that the supervisor did not cause.
struct Death {
  std::string how;              // "SIGSEGV", "an error"
  std::vector<Work> in_flight;  // the shards and evaluation pieces of its lanes
};

// The shards and evaluation pieces on an activity board.
std::vector<Work> in_flight(const std::vector<LaneActivity>& activity);

// Drops deaths whose shards all belong to steps before `step`: the run has got past them.
void forget_before(int64_t step, std::vector<Death>& deaths);

// Returns the sentence that ends the run once `most` deaths had the same shard in flight. A worker with several lanes
// dies with several shards in flight, so the shard that occurs most often is named. SIGKILL counts like other deaths,
// because the kernel frees memory with it; a kill from outside hardly ever hits the same shard `most` times.
std::optional<std::string> deadly_shard_in(const std::vector<Death>& deaths, int64_t most);

}  // namespace sinew::supervise
