// Measures in another process what a step needs. Private to train/.
#pragma once

#include <atomic>
#include <optional>

#include "train/fit_memory.h"
#include "train/train.h"

namespace sinew::train {

struct TrialOptions {
  spec::Job job;  // every auto is resolved; the shape replaces its lanes and shards
  const data::Dataset* dataset = nullptr;
  StepShape shape;
  int64_t most_bytes = 0;  // the trial ends early before it holds more; see ResidentMemory
  double ends_at = 0;      // on the system's monotonic clock: then nobody waits for the result any more
  const std::atomic<int>* stop_signals = nullptr;  // above 0: the same
};

struct TrialResult {
  enum class End {
    measured,
    too_long,    // ends_at came first
    stopped,     // a stop was asked for
    impossible,  // this process has threads, or may not fork
  };
  End end = End::measured;
  MemoryTrial trial;       // if it was measured
  int64_t file_bytes = 0;  // resident pages of files at the end; not in trial.bytes
};

// Forks. The child makes two steps, so that each lane computes two shards in each, with a copy of the state as a
// checkpoint takes it, and evaluates some parts. It never holds more than most_bytes: its allocations fail before, and
// this process ends it if it holds more nevertheless. So the kernel has no reason to end any process.
TrialResult try_memory(const TrialOptions& options);

}  // namespace sinew::train
