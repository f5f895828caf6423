// Numbers as a person would write them: 0.0123 is as good a learning rate as 0.012297041093, and can be read, said and
// typed again. For tune/ only.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

// The nearest number with so many significant digits; written in decimal it has no more.
double rounded(double value, int digits);

// The point with real numbers rounded: to four significant digits, and a ten thousandth of the range, whichever is
// finer; to more digits where the rounded point was tried already and this one was not. Stays in the space.
Point rounded(const Study& study, const Point& point);

}  // namespace sinew::tune
