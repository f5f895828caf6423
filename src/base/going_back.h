// How often a run went back to its newest checkpoint because work or memory could not be trusted, and whether it may go
// back once more. A worker that is alone counts for itself; the coordinator counts for a group, and every view carries
// the count to its members and to the next coordinator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace sinew {

// A run that went back this often, and had no newer checkpoint in between, ends with an error instead.
inline constexpr int64_t kMostGoingBack = 3;

struct GoingBack {
  int64_t count = 0;     // since the run last had a newer checkpoint
  int64_t durable = -1;  // the step of the newest durable checkpoint when the run last went back; -1: none is known
  std::string why;       // the reason of the last time
  bool operator==(const GoingBack&) const = default;

  bool too_often() const { return count > kMostGoingBack; }
  // The state after the run goes back once more. `newest` is the step of the newest checkpoint that is known to be
  // durable; -1: none is known. A newer checkpoint than the last time begins the count anew.
  GoingBack once_more(int64_t newest, std::string reason) const {
    const bool advanced = count > 0 && newest > durable;
    return {advanced ? 1 : count + 1, std::max(durable, newest), std::move(reason)};
  }
};

}  // namespace sinew
