// Inside report/: how many rows a text needs, and cutting it to a width. base/ formats numbers and breaks texts into
// lines.
#pragma once

#include <string>
#include <string_view>

#include "base/short_number.h"
#include "base/terminal.h"
#include "base/terminal_text.h"

namespace sinew::report {

// Cuts the text to at most `columns` columns. If it cuts, the text ends with "…".
std::string fit(std::string_view text, int columns);
// Returns how many rows of a terminal with `columns` columns a line fills.
int rows_of(std::string_view line, int columns);

}  // namespace sinew::report
