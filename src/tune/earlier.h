// Where a study begins that knows earlier ones. For tune/ only.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

// The best point of one earlier study after another; none: they have all been asked.
std::optional<Suggestion> from_earlier(const Study& study);

}  // namespace sinew::tune
