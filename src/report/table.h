// Inside report/: formats a table as text.
#pragma once

#include <string>
#include <vector>

namespace sinew::report {

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool right = false;  // align right, for numbers
  int drop_rank = 0;   // if the table is too wide, greater values are left out first; 0 never
  int min_width = 8;   // the column may be narrowed down to this width
};

// Every line ends in a newline. `columns` is the maximum width; 0 means any width.
std::string table_text(std::vector<Column> table, int columns);

}  // namespace sinew::report
