// Inside loop/: decides what an evaluation means. Pure functions that return their reason.
#pragma once

#include <map>
#include <string>

#include "loop/state.h"
#include "spec/spec.h"

namespace sinew::loop {

struct Judgement {
  EvaluationState state;  // after this evaluation; state.stop says why training ends, if it does
  bool improved = false;  // true: checkpoint.monitor has its best value so far
};

// `metrics`: full names, "val/accuracy". checkpoint.monitor decides which step is best; early_stopping.monitor, with a
// best value of its own, decides patience. If both are the same metric there is one decision for both, and a change
// below early_stopping.min_delta counts as no improvement for either.
Judgement judge(const EvaluationState& before, Step step, const report::Metrics& metrics, const spec::Job& job);

// The metrics that the job's decisions need and this evaluation lacks, each with a sentence for the user that says what
// cannot be decided without it and why it is probably missing.
std::map<std::string, std::string> missing_metrics(const report::Metrics& metrics, const spec::Job& job);

}  // namespace sinew::loop
