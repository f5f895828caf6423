// Inside report/: formats a table as text.
#pragma once

#include <string>
#include <vector>

namespace sinew::report {

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool right = false;  // align right, for numbers
  // if the table is too wide, the column with the highest value is left out first; a column with 0 is never left out
  int drop_rank = 0;
  int min_width = 8;  // the column may be narrowed to this width
};

// Every line ends in a newline. `columns` is the maximum width; 0 means any width.
std::string table_text(std::vector<Column> table, int columns);

}  // namespace sinew::report
