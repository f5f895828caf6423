// Numbers, durations and names as people read them, and how wide text is on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sinew::report {

std::string short_number(double value);     // four digits or so: 0.3120, 12.34, 1.20e-05, nan
std::string short_count(double value);      // 84.2k, 1.20M
std::string short_seconds(double seconds);  // 12s, 3m05s, 2h14m, 5d03h

// Columns the text takes. Wide for every character that might be: a guess on the safe side.
int display_width(std::string_view text);
// At most `columns` wide, "…" for what was cut off.
std::string fit(std::string_view text, int columns);
// Safe on a terminal: control characters and broken UTF-8 become '?'; `lines`: newlines and tabs stay.
std::string printable(std::string_view text, bool lines = false);

}  // namespace sinew::report
