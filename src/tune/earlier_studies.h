// Warm start: suggests the best points of earlier studies. For tune/ only.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

// The best point of the next earlier study that has not yet contributed one; none: all studies have. A function of the
// record.
std::optional<Suggestion> next_of_earlier_studies(const Study& study);

}  // namespace sinew::tune
