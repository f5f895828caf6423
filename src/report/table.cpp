#include "report/table.h"

#include <algorithm>

#include "base/printable.h"
#include "report/text_format.h"

namespace sinew::report {
namespace {

constexpr int kGap = 2;

int width_of(const Column& column) {
  int width = display_width(column.title);
  for (const std::string& cell : column.cells) width = std::max(width, display_width(cell));
  return width;
}

int sum(const std::vector<int>& widths) {
  int width = -kGap;
  for (const int one : widths) width += one + kGap;
  return width;
}

void append_row(std::string& out, const std::vector<Column>& table, const std::vector<int>& widths, int columns,
                auto text_of) {
  std::string row;
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string text = fit(text_of(table[i]), widths[i]);
    const std::string blanks(static_cast<size_t>(std::max(0, widths[i] - display_width(text))), ' ');
    row += (i == 0 ? "" : std::string(kGap, ' ')) + (table[i].right ? blanks + text : text + blanks);
  }
  row.resize(row.find_last_not_of(' ') + 1);
  out += (columns > 0 ? fit(row, columns) : row) + "\n";
}

}  // namespace

std::string table_text(std::vector<Column> table, int columns) {
  std::vector<int> widths;
  for (Column& column : table) {
    for (std::string& cell : column.cells) cell = printable(cell);
    column.title = printable(column.title);
    widths.push_back(width_of(column));
  }
  while (columns > 0 && sum(widths) > columns) {
    const auto first_to_drop = std::max_element(
        table.begin(), table.end(), [](const Column& a, const Column& b) { return a.drop_rank < b.drop_rank; });
    if (first_to_drop->drop_rank == 0) break;
    widths.erase(widths.begin() + (first_to_drop - table.begin()));
    table.erase(first_to_drop);
  }
  while (columns > 0 && sum(widths) > columns) {  // then narrow the widest of the remaining columns
    size_t widest = table.size();
    for (size_t i = 0; i < table.size(); ++i) {
      if (widths[i] > table[i].min_width && (widest == table.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == table.size()) break;
    --widths[widest];
  }
  std::string out;
  append_row(out, table, widths, columns, [](const Column& column) { return column.title; });
  const size_t rows = table.empty() ? 0 : table[0].cells.size();
  for (size_t row = 0; row < rows; ++row) {
    append_row(out, table, widths, columns, [row](const Column& column) { return column.cells[row]; });
  }
  return out;
}

}  // namespace sinew::report
