// Formats numbers and durations for output, and fits texts to the width of a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/report.h"

namespace sinew::report {

std::string short_number(double value);     // about four digits: 0.3120, 12.34, 1.20e-05, nan
std::string short_count(double value);      // 84.2k, 1.20M
std::string short_seconds(double seconds);  // 12s, 3m05s, 2h14m, 5d03h

// Returns how many terminal columns the text needs. Counts two columns for every character that may be wide, so the
// result is never too small.
int display_width(std::string_view text);
// Breaks each line of the text between words, so that it needs at most `columns` columns; a longer word stays whole.
// Two blanks separate the metrics of a line: it breaks there if it can. Later parts of a line are indented.
std::string wrap(std::string_view text, int columns);
// Returns the most columns of a line. Leaves out the last one of the terminal, because some terminals start a new line
// if it is full. 0: the terminal does not say its width, or there is none.
int usable_columns(const Terminal& terminal);

}  // namespace sinew::report
