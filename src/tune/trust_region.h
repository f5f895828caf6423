// Computes the trust region: a box around the best point, within which a local model is reliable.
//
// Eriksson, Pearce, Gardner, Turner, Poloczek, "Scalable global optimization via local Bayesian optimization" (NeurIPS
// 2019). The box grows while suggestions from it keep improving the best value, and shrinks while they keep failing. It
// starts over when it has become tiny. The region depends only on the trial history; a better point from any sampler
// moves it.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

inline constexpr const char* kTrustRegion = "trust_region";  // the name of this sampler in Trial::by

struct TrustRegion {
  double side = 0.8;    // the side of the box, as a fraction of the range of a parameter
  int64_t centre = -1;  // the best trial, feasible ones first; -1: no trial has a finite loss
  // how many suggestions in a row improved the best value, or failed to, since the side last changed
  int successes = 0, failures = 0;
  int restarts = 0;
};

TrustRegion trust_region_of(const Study& study);

}  // namespace sinew::tune
