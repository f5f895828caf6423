// Numbers as a person would write them: 0.0123 is as good a learning rate as 0.012297041093, and can be read, said and
// typed again. For tune/ only.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

// The nearest number with so many significant digits; written in decimal it has no more.
double rounded(double value, int digits);

// A parameter's value, if it is a real number without a step: to four significant digits, or to the fourth digit of the
// range, whichever is finer; to so many more if asked.
double as_written(const Parameter& parameter, double value, int more = 0);

// A step as a person would write it: 27, 2.5, 2e+299.
std::string step_text(double step);

// The point with real numbers rounded (as_written), to up to three digits more where that was tried already; when all
// of it was, the point is no new one. Stays in the space.
Point rounded(const Study& study, const Point& point);

}  // namespace sinew::tune
