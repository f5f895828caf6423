// The region around the best point in which a local model is believed.
//
// Eriksson, Pearce, Gardner, Turner, Poloczek, "Scalable global optimization via local Bayesian optimization" (NeurIPS
// 2019): the region grows when its suggestions keep improving, shrinks when they keep failing, and begins anew when it
// has shrunk to nothing. Read off the record: whoever finds a better point moves the region.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

inline constexpr const char* kTrustRegion = "trust_region";  // who suggested, in the record

struct TrustRegion {
  double side = 0.8;                // of the box, in units of a parameter's range
  int64_t centre = -1;              // the best trial: feasible ones first; -1: none is known
  int successes = 0, failures = 0;  // in a row, since the side last changed
  int restarts = 0;
};

TrustRegion trust_region_of(const Study& study);

}  // namespace sinew::tune
