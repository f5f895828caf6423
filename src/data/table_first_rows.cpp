// Reads the rows from which the formats of the columns are decided.
#include <algorithm>

#include "base/error.h"
#include "data/table.h"
#include "data/text_folder.h"

namespace sinew::data {
namespace {

constexpr size_t kMostSamples = 1'000'000;  // cells that are kept
constexpr int64_t kLeastRows = 50;
constexpr size_t kLongestSample = 200;  // bytes; a longer cell is a word anyway

}  // namespace

std::unique_ptr<RowReader> reader_of(const TableText& text, const TableRequest& request) {
  if (request.format == "jsonl" || request.format == kTextFolder) return read_jsonl(text.text(), text.path);
  return read_csv(text.text(), text.path, text.dialect.separator, text.dialect.style.header, text.dialect.rows_above,
                  text.typed);
}

bool is_row_index(const FirstRows& first, const std::string& column) {
  return (first.first_is_row_index && column == first.names[0]) ||
         (column.starts_with("__index_level_") && column.ends_with("__"));
}

FirstRows read_first_rows(RowReader& reader, bool whole) {
  FirstRows first;
  Row row;
  const auto next = [&] {
    try {
      return reader.next(row);
    } catch (const Error&) {  // the end of the text is within quotes
      if (whole) throw;
      return false;
    }
  };
  std::optional<double> previous;
  bool counts = true;
  size_t kept = 0;
  while (first.rows < kFirstRows && (kept < kMostSamples || first.rows < kLeastRows) && next()) {
    if (!row.problem.empty()) {
      if (first.first_problem.empty()) first.first_problem = std::to_string(row.line) + ": " + row.problem;
      continue;
    }
    ++first.rows;
    if (first.cells.size() < reader.columns().size()) first.cells.resize(reader.columns().size());
    for (size_t i = 0; i < std::min(row.fields.size(), first.cells.size()); ++i) {
      const Field& field = row.fields[i];
      const bool plain = field.kind == Field::Kind::plain;
      if (field.kind == Field::Kind::missing || (plain && is_missing(field.text))) continue;
      first.cells[i].push_back({std::string(field.text.substr(0, kLongestSample)), !plain});
      ++kept;
    }
    const auto number = row.fields.empty() ? std::nullopt : parse_number(row.fields[0].text);
    counts = counts && number && (previous ? *number == *previous + 1 : *number == 0 || *number == 1);
    previous = number;
  }
  first.names = reader.columns();
  first.cells.resize(first.names.size());
  first.bytes = reader.bytes_read();
  const bool nameless = reader.header().unnamed_first || (!first.names.empty() && first.names[0] == "Unnamed: 0");
  first.first_is_row_index = nameless && counts && first.rows > 1 && first.names.size() > 1;
  return first;
}

}  // namespace sinew::data
