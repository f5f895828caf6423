// Rounds numbers to few digits. A learning rate of 0.0123 is as good as 0.012297041093, and easier to read and type.
// Private to tune/.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

// Returns the nearest number with this many significant decimal digits.
double rounded(double value, int digits);

// Rounds the value of a real parameter without a step to four significant digits, or to the fourth digit of the width
// of the parameter's range if that digit is finer. Keeps `more` additional digits. Other values stay as they are.
double as_written(const Parameter& parameter, double value, int more = 0);

// Returns a step as short text: 27, 2.5, 2e+299.
std::string step_text(double step);

// Rounds the real numbers of a point (as_written). If the rounded point was tried, keeps up to three more digits. If no
// such point is both new and allowed, returns the rounded point, or `point` itself if the rounded one is not allowed.
Point rounded(const Study& study, const Point& point);

}  // namespace sinew::tune
