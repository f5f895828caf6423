// Private to data/: finds out how a CSV file is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/cells.h"
#include "spec/spec.h"

namespace sinew::data {

// What the columns of a training file fix for every later file.
struct TableStyle {
  bool header = true;  // the first line has the names of the columns
  NumberStyle numbers;
  bool operator==(const TableStyle&) const = default;
};

struct Dialect {
  char separator = ',';
  size_t rows_above = 0;  // rows above the header that are not part of the table: a title, a comment, the sep= of Excel
  TableStyle style;
  std::vector<std::string> evidence;  // a phrase for each decision that is not the usual one
};

// Decides the separator, the header and the style of numbers of a file. `head` is the first part of its text, as UTF-8
// without a byte order mark. If `whole`, it is all of the text. `usual` is the separator that the name of the file
// suggests. If `known` is given, it is the style of the training file, and only the separator and the rows above the
// header are decided.
Dialect judge_dialect(std::string_view head, bool whole, char usual, const spec::TableOptions& wanted,
                      const TableStyle* known = nullptr);

// Returns the number of cells of a line if the text is a table although the name of its file does not say so: each line
// of `head` has the same number of cells, more than one, and at least one column holds numbers. Otherwise returns 0.
size_t cells_of_unnamed_table(std::string_view head, bool whole);

// Names of columns that every table can have.
struct TableHeader {
  std::vector<std::string> names;
  int64_t line = 1;                  // where it stands in the file
  std::vector<std::string> changes;  // what was changed, without the place
  bool unnamed_first = false;        // the first column had no name: maybe the row numbers that pandas writes
};
// A cell of the header line: its text, and whether spaces around it were already removed.
struct HeaderCell {
  std::string_view text;
  bool had_spaces = false;
};
// Gives a name to columns without one, makes equal names different as pandas does (x, x.1), and removes spaces around
// names.
TableHeader resolve_header(const std::vector<HeaderCell>& cells);
std::string default_column_name(size_t index);  // "column_1" for index 0

}  // namespace sinew::data
