// Numbers as text. JSON has its own: base/json_text.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

namespace sinew {

// ---- writing -------------------------------------------------------------------------------------------------------

// The shortest text that reads back as the same number; "inf" and "nan" for one that is not finite.
template <std::floating_point Number>
std::string number_text(Number value);

// A number for people, with at most `digits` digits: 0.1235, 1.5e-07.
std::string rounded_text(double value, int digits = 6);

void append_integer(std::string& out, int64_t value);

// ---- reading -------------------------------------------------------------------------------------------------------

// Numbers and durations as a user writes them on the command line and in environment variables. Each function throws a
// UsageError if the text is not valid. The error names `what`: an option or a variable.

// A whole number from `least` to `most`.
int64_t whole_number(const std::string& what, const std::string& text, int64_t least, int64_t most);

// A finite number above 0.
double number_above_0(const std::string& what, const std::string& text);

// A duration above 0 and of at most 400 days, in seconds: "5s", "300ms", "10m", "2h", "1d", or a number of seconds. If
// `zero`, 0 is valid, too.
double duration_seconds(const std::string& what, const std::string& text, bool zero = false);

}  // namespace sinew
