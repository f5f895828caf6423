// Measures in another process how fast a job trains in each arithmetic. Private to train/.
#pragma once

#include <atomic>
#include <vector>

#include "train/child_process.h"
#include "train/fastest.h"

namespace sinew::train {

struct FastestTrialOptions {
  spec::Job job;  // every auto is resolved; each trial replaces its precision and memory format
  const data::Dataset* dataset = nullptr;
  double most_seconds = 0;                         // for everything
  int64_t most_bytes = 0;                          // see ChildOptions; 0: no limit
  const std::atomic<int>* stop_signals = nullptr;  // the same
};

struct FastestTrials {
  ChildEnd end = ChildEnd::impossible;
  bool killed = false;                       // see ChildResult
  std::vector<ArithmeticTrial> trials = {};  // one for each arithmetic, in order; some may not be measured
};

// Lets a child (train/child_process.h) train from the initial state for a few steps in each arithmetic, in rounds. It
// has one engine at a time, so it needs about the memory of the training. It takes a few seconds, longer if the
// training takes hours, and at most a tenth of what it estimates for the training.
FastestTrials try_arithmetics(const FastestTrialOptions& options, const std::vector<Arithmetic>& all);

}  // namespace sinew::train
