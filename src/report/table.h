// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace sinew::report {

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool right = false;  // numbers
  int spare = 0;       // greater: left out earlier when the table is too wide; 0 stays
  int least = 8;       // a column that stays may be cut down to this width
};

// Every line ends in a newline. `columns` 0: as wide as it needs.
std::string table_text(std::vector<Column> table, int columns);

}  // namespace sinew::report
