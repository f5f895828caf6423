// Measures in another process what a step needs. Private to train/.
#pragma once

#include <atomic>
#include <optional>

#include "train/child_process.h"
#include "train/fit_memory.h"
#include "train/train.h"

namespace sinew::train {

struct TrialOptions {
  spec::Job job;  // every auto is resolved; the shape replaces its lanes and shards
  const data::Dataset* dataset = nullptr;
  StepShape shape;
  int64_t most_bytes = 0;                          // see ChildOptions
  double ends_at = 0;                              // the same
  const std::atomic<int>* stop_signals = nullptr;  // the same
};

struct TrialResult {
  using End = ChildEnd;
  End end = End::measured;
  MemoryTrial trial;       // if it was measured
  int64_t file_bytes = 0;  // resident pages of files at the end; not in trial.bytes
};

// Lets a child (train/child_process.h) make two steps, so that each lane computes two shards in each, with a copy of
// the state as a checkpoint takes it, and evaluate some parts.
TrialResult try_memory(const TrialOptions& options);

}  // namespace sinew::train
