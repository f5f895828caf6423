// The audit of shards: some shards of a step are computed twice, by different workers, and the results are compared bit
// by bit. An error of a processor that changes the result of a shard goes into the sums of all workers equally, so no
// comparison of states can find it.
//
// train/ chooses the shards, group/ hands them out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace sinew {

// The shards of one step that are computed twice.
struct Audit {
  Step step;
  bool evaluation = false;      // the shards are those of an evaluation of the state at `step`
  std::vector<int64_t> shards;  // ascending
  uint64_t key = 0;             // decides which of several equally good members computes a shard again
  bool all = false;             // every shard of every step is audited, so no wrong result was ever used
  // true: the members compare their copies of some data. A result describes the damage of a member's copy, and is
  // absent if the copy is intact. If one of two results is absent, that one is right. The two members are on different
  // machines if there are several machines.
  bool of_copies = false;
  std::vector<std::string> names;  // how messages name each shard; empty: by its number
  bool contains(ShardIndex shard) const;
};

std::string shard_name(const Audit& audit, ShardIndex shard);  // "shard 3 of step 12", for messages

// Chooses the shards of a step, each with probability `fraction`. A pure function of its arguments, so all workers
// choose the same shards, and the choice is the same again if the step is repeated.
Audit audit_of(uint64_t seed, Step step, int64_t shards, double fraction);

// A shard that a lane is to compute. If `audit`, another member computes it too, and this result only serves to check
// the other one.
struct ShardTask {
  ShardIndex shard;
  bool audit = false;
  operator ShardIndex() const { return shard; }  // NOLINT(google-explicit-constructor): most callers audit nothing
  bool operator==(const ShardTask&) const = default;
};

}  // namespace sinew
