// Which shard kills whoever computes it, from what the dead had in flight. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/activity_board.h"

namespace sinew::cli {

// A worker's death, not by the supervisor's wish.
struct Death {
  std::string how;              // "SIGSEGV", "an error"
  std::vector<Work> in_flight;  // shards and pieces of evaluation that its lanes were at
};

// The shards among what an activity board shows.
std::vector<Work> in_flight(const std::vector<LaneActivity>& activity);

// Deaths a later step has made void: the run got past what those workers died of.
void forget_before(int64_t step, std::vector<Death>& deaths);

// The sentence that ends the run, once one shard was in flight in `most` deaths. Workers of several lanes die with
// several shards in flight: guilty is what was there most often. A kill from outside hits any shard, the same one
// `most` times hardly ever; so SIGKILL, by which the kernel frees memory, counts like every other death.
std::optional<std::string> poison_in(const std::vector<Death>& deaths, int64_t most);

}  // namespace sinew::cli
