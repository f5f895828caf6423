// Warm start: suggests the best points of earlier studies. Private to tune/.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

// Suggests the best point of an earlier study that is valid and new. Each of the first earlier studies has one turn, in
// their order. Returns nullopt when all have had their turn, or if the study of this turn has no such point. The result
// depends only on the options and the trials of the study.
std::optional<Suggestion> next_of_earlier_studies(const Study& study);

}  // namespace sinew::tune
