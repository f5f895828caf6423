// Inside train/: what an evaluation means. Pure functions that return their reason.
#pragma once

#include "train/train.h"

namespace sinew::train {

struct Judgement {
  EvaluationState state;  // after this evaluation; state.stop says why training is over, if it is
  bool improved = false;  // checkpoint.monitor is the best so far
};

// `metrics`: full names, "val/accuracy". What is best is judged by checkpoint.monitor, patience by
// early_stopping.monitor and its own best value. Where both are the same metric there is one judgement, and a change
// below early_stopping.min_delta is no improvement to either.
Judgement judge(const EvaluationState& before, Step step, const report::Metrics& metrics, const spec::Job& job);

bool meets(const spec::Objective& objective, double value);

}  // namespace sinew::train
