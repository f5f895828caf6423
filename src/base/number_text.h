// Converts numbers to text and back. base/json_text.h writes the numbers of JSON.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

namespace sinew {

// ---- writing -------------------------------------------------------------------------------------------------------

// Returns the shortest text that reads back as the same number; "inf", "-inf" or "nan" for a number that is not finite.
template <std::floating_point Number>
std::string number_text(Number value);

// Formats a number for people, with at most `digits` digits: 0.1235, 1.5e-07.
std::string rounded_text(double value, int digits = 6);

void append_integer(std::string& out, int64_t value);

// ---- reading -------------------------------------------------------------------------------------------------------

// The following functions parse what a user writes on the command line or in an environment variable. Each throws a
// UsageError if the text is not valid. The error names `what`, the option or the variable.

// Returns a whole number from `least` to `most`.
int64_t whole_number(const std::string& what, const std::string& text, int64_t least, int64_t most);

// Returns a finite number above 0. With `zero`, 0 is allowed, too.
double number_above_0(const std::string& what, const std::string& text, bool zero = false);

// Returns a duration in seconds, above 0 and at most 400 days: "5s", "300ms", "10m", "2h", "1d", or a number of
// seconds. Also accepts 0 if `zero`.
double duration_seconds(const std::string& what, const std::string& text, bool zero = false);

}  // namespace sinew
