// Writes the columns of a table as lines of text.
#include <algorithm>

#include "base/printable.h"
#include "data/data.h"
#include "data/files.h"

namespace sinew::data {
namespace {

constexpr size_t kWidestName = 24;

// Code points, which are about as wide as each other in a terminal.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(std::string text, size_t width) {
  text.append(width - std::min(width, width_of(text)), ' ');
  return text;
}

}  // namespace

std::vector<std::string> column_lines(const std::vector<ColumnFacts>& columns, size_t most) {
  size_t width = 6;
  for (const ColumnFacts& column : columns)
    width = std::max(width, std::min(kWidestName, width_of(printable_start(column.name))));
  std::vector<std::string> lines = {padded("column", width) + "  kind        missing  reason"};
  for (size_t i = 0; i < columns.size() && i < most; ++i) {
    const ColumnFacts& column = columns[i];
    lines.push_back(padded(printable_start(column.name), width) + "  " + padded(column.kind, 10) + "  " +
                    padded(column.missing == 0 ? "" : with_commas(column.missing), 7) + "  " +
                    printable(column.reason));
  }
  if (columns.size() > most) {
    const auto more = static_cast<int64_t>(columns.size() - most);
    lines.push_back("and " + with_commas(more) + (more == 1 ? " more column" : " more columns"));
  }
  return lines;
}

}  // namespace sinew::data
