// Chooses shards and lanes that fit the memory: pure decisions from what trials have measured. Private to train/.
//
// The default (data::default_shards, one lane for each core) is kept whenever it fits. Otherwise the fewest shards that
// fit on one lane are chosen, and then the most lanes that fit these shards. So memory alone decides about the shards,
// which are part of the result. Smaller shards and fewer lanes never need more, so few shapes are tried.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/data.h"
#include "spec/spec.h"

namespace sinew::train {

// Returns more bytes than a training of the job will need besides those of the process now. It follows from the job
// alone and takes no time, so it is an estimate for models that only their file describes. `prefetches`: the samples
// are loaded ahead.
int64_t memory_bound(const spec::Job& job, const data::DataInfo& info, int64_t lanes, int64_t shards, bool prefetches);

// Returns whole / by, rounded up.
inline int64_t quotient_up(int64_t whole, int64_t by) {
  return (whole + by - 1) / by;
}

// How a step is computed.
struct StepShape {
  int64_t lanes = 1, shards = 1;
  auto operator<=>(const StepShape&) const = default;
};

// What a trial of a shape has shown.
struct MemoryTrial {
  StepShape shape;
  bool ended_early = false;  // true: memory ran out
  int64_t bytes = 0;         // the most that the process needed; 0: unknown, because it ended early
  std::string error = {};    // why shards of this size cannot be trained at all, if that is not their memory
};

struct FitProblem {
  int64_t room = 0;        // the most bytes that the process may need
  int64_t batch_size = 1;  // samples of a step
  StepShape wanted;        // the default, or what the user gave
  bool may_change_shards = false, may_change_lanes = false;
};

struct FitChoice {
  StepShape shape;
  bool fits = true;          // false: no shape fits; `shape` is the one that needs the least
  int64_t least_bytes = 0;   // what `shape` needs, if it is known; else 0
  int64_t wanted_bytes = 0;  // what the wanted shape needs, if it is known; else 0
};

// Returns the shape to try next, or the choice. The caller makes the trials that it asks for, one after another, until
// it chooses.
std::variant<StepShape, FitChoice> next_fit(const FitProblem& problem, const std::vector<MemoryTrial>& trials);

}  // namespace sinew::train
