// Inside train/: what an evaluation means. Pure functions that return their reason.
#pragma once

#include "train/train.h"

namespace sinew::train {

struct Judgement {
  EvaluationState state;  // after this evaluation; state.stop says why training is over, if it is
  bool improved = false;  // the monitored metric is the best so far
};

// `metrics`: full names, "val/accuracy". Early stopping monitors its own metric; the best checkpoint the checkpoint's:
// where both are set they are usually the same, and early stopping's decides.
Judgement judge(const EvaluationState& before, Step step, const report::Metrics& metrics, const spec::Job& job);

bool meets(const spec::Objective& objective, double value);

}  // namespace sinew::train
