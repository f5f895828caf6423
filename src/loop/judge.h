// Decides what an evaluation means. All functions are pure and return their reason. Private to loop/.
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

// Decides anew whether training is over, with the state of the newest evaluation: its `stop` and objective_met are
// those that `job` asks for. For a run whose end was changed.
EvaluationState decide_end(EvaluationState state, const spec::Job& job);

// `metrics` has full names, such as "val/accuracy". checkpoint.monitor decides which step is best.
// early_stopping.monitor decides patience, by a best value of its own. If both monitors are the same metric, one
// decision serves both: a change below early_stopping.min_delta is then no improvement for either.
Judgement judge(const EvaluationState& before, Step step, const report::Metrics& metrics, const spec::Job& job);

// Returns the metrics that the job's decisions need and this evaluation lacks. The sentence of each tells the user what
// cannot be decided without the metric, and why it is probably missing.
std::map<std::string, std::string> missing_metrics(const report::Metrics& metrics, const spec::Job& job);

}  // namespace sinew::loop
