// Makes the search space of a job from tune.search, and turns a point of the space into overrides of the job.
#pragma once

#include <string>
#include <vector>

#include "spec/spec.h"
#include "tune/tune.h"

namespace sinew::study {

// Returns the space of tune.search with tune.parameter_constraints. Choices stay strings even if they look like numbers
// or lists: "64", "[64, 64]". Throws Error if no point satisfies the constraints.
tune::Space space_of(const spec::TuneOptions& tune);

// Returns the active parameters of a point as overrides of the job: "optimizer.lr=0.01".
std::vector<std::string> overrides_of(const tune::Space& space, const tune::Point& point);

}  // namespace sinew::study
