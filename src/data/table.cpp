#include "data/table.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "data/files.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

constexpr int64_t kPreviewRows = 1000;
constexpr size_t kFreeCells = 1 << 20;  // a table may hold this many cells, plus one for each byte of its file
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Fills the columns row by row. A column of inferred type counts as numeric until a value is not a number.
class TableBuilder {
 public:
  // Reserves memory for `rows`, the expected number of rows. Refuses a table with more than `max_cells` cells.
  TableBuilder(const std::string& name, const ColumnTypes& types, size_t rows, size_t max_cells)
      : types_(types), rows_(rows), max_cells_(max_cells) {
    table_.name = name;
    table_.lines.reserve(rows);
  }

  // Adds the row, or sets row.problem if a value does not fit its column.
  void add(Row& row, const std::vector<std::string>& columns) {
    for (size_t i = table_.all_columns.size(); i < columns.size(); ++i) open_column(columns[i], i);
    if ((table_.lines.size() + 1) * table_.columns.size() > max_cells_) {
      throw Error("DATA_TOO_MANY_COLUMNS",
                  table_.name + ':' + std::to_string(row.line) + ": the file has " +
                      std::to_string(table_.columns.size()) +
                      " different keys up to here, and most lines lack most of them",
                  "name the columns that matter in data.columns.features");
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      Column& column = table_.columns[i];
      const Field& field = row.fields[slot.field];
      const bool missing =
          field.kind == Field::Kind::missing || (field.kind == Field::Kind::plain && is_missing(field.text));
      std::string problem;
      if (column.categorical) {
        column.codes.push_back(missing ? -1 : code_of(slot, column, field.text, problem));
      } else {
        column.numbers.push_back(missing ? kMissing : number_of(slot, field, problem));
      }
      if (problem.empty()) continue;
      row.problem = "column '" + column.name + "' " + problem;
      drop_row();
      return;
    }
    table_.lines.push_back(row.line);
  }

  // Returns the names of the columns that counted as numeric until a value was not a number.
  std::vector<std::string> mistyped_columns() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].mistyped) names.push_back(table_.columns[i].name);
    }
    return names;
  }
  Table& table() { return table_; }

 private:
  struct Slot {
    size_t field = 0;  // index into the fields of a row
    bool inferred = false;
    bool mistyped = false;          // true: the type is inferred, and a value was not a number
    int32_t last = -1;              // the code of the previous value, because values often repeat
    std::deque<std::string> words;  // backing store for the keys of `codes`
    std::unordered_map<std::string_view, int32_t> codes;
  };

  // Opens a column. An ignored column stores only its name and no cells, because a file may have a new column on every
  // line.
  void open_column(const std::string& name, size_t field) {
    table_.all_columns.push_back(name);
    const ColumnType type = types_(name);
    if (type == ColumnType::ignored) return;
    Slot& slot = slots_.emplace_back();
    slot.field = field;
    slot.inferred = type == ColumnType::inferred;
    Column& column = table_.columns.emplace_back();
    column.name = name;
    column.categorical = type == ColumnType::categorical;
    if (rows_ * table_.columns.size() <= max_cells_) {
      column.categorical ? column.codes.reserve(rows_) : column.numbers.reserve(rows_);
    }
    // The rows before the first row that has this key have no value in the column.
    column.categorical ? column.codes.resize(table_.lines.size(), -1)
                       : column.numbers.resize(table_.lines.size(), kMissing);
  }

  static int32_t code_of(Slot& slot, Column& column, std::string_view text, std::string& problem) {
    if (slot.last >= 0 && column.categories[static_cast<size_t>(slot.last)] == text) return slot.last;
    if (const auto found = slot.codes.find(text); found != slot.codes.end()) return slot.last = found->second;
    if (const size_t bad = first_invalid_utf8(text); bad != std::string_view::npos) {
      problem = "is not UTF-8 at byte " + std::to_string(bad) + " of its value";
      return -1;
    }
    slot.last = static_cast<int32_t>(column.categories.size());
    column.categories.emplace_back(text);
    slot.codes.emplace(slot.words.emplace_back(text), slot.last);
    return slot.last;
  }

  static double number_of(Slot& slot, const Field& field, std::string& problem) {
    if (slot.mistyped) return kMissing;  // read_table reads the file again, with this column as categorical
    const auto number = field.kind == Field::Kind::text ? std::nullopt : parse_number(field.text);
    if (number && std::isfinite(*number)) return *number;
    if (number) {
      problem = "holds " + printable_start(field.text) + ", which is not a finite number";
    } else if (slot.inferred) {
      slot.mistyped = true;
    } else {
      problem = "holds '" + printable_start(field.text) + "', which is not a number";
    }
    return kMissing;
  }

  void drop_row() {  // removes the values that the row has added so far
    for (Column& column : table_.columns) {
      column.categorical ? column.codes.resize(table_.lines.size(), -1)
                         : column.numbers.resize(table_.lines.size(), kMissing);
    }
  }

  const ColumnTypes& types_;
  const size_t rows_, max_cells_;
  Table table_;
  std::deque<Slot> slots_;  // one for each column of the table
};

std::unique_ptr<RowReader> reader_of(std::string_view text, const std::string& name, const std::string& format) {
  if (format == "jsonl") return read_jsonl(text, name);
  return read_csv(text, name, format == "tsv" ? '\t' : ',');
}

}  // namespace

const Column* Table::find(std::string_view column) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == column; });
  return found == columns.end() ? nullptr : &*found;
}

Table read_table(std::string_view text, const std::string& name, const std::string& format, bool skip_corrupt,
                 const ColumnTypes& types) {
  std::vector<std::string> mistyped;  // inferred columns that hold values which are not numbers
  const ColumnTypes known = [&](const std::string& column) {
    const ColumnType wanted = types(column);
    const bool words = std::find(mistyped.begin(), mistyped.end(), column) != mistyped.end();
    return wanted == ColumnType::inferred && words ? ColumnType::categorical : wanted;
  };
  // The first pass reads only the first rows. It finds most of the categorical columns, so the whole file is rarely
  // read twice.
  size_t likely_rows = std::min<size_t>(kPreviewRows, text.size() / 16);
  for (int64_t limit = kPreviewRows;;) {
    const auto reader = reader_of(text, name, format);
    TableBuilder builder(name, known, likely_rows, kFreeCells + text.size());
    Table& table = builder.table();
    Row row;
    bool ended = true;
    while (reader->next(row)) {
      if (row.problem.empty()) builder.add(row, reader->columns());
      if (!row.problem.empty()) {
        const std::string what = name + ':' + std::to_string(row.line) + ": " + row.problem;
        if (!skip_corrupt) {
          throw Error("DATA_BAD_ROW", what, "correct the line, or leave such lines out with data.on_corrupt: skip");
        }
        if (table.skipped++ == 0) table.first_skipped = what;
      }
      if (table.rows() >= limit) {
        ended = false;
        break;
      }
    }
    const std::vector<std::string> more = builder.mistyped_columns();
    if (ended && more.empty()) {
      if (table.all_columns.empty()) table.all_columns = reader->columns();  // the file has no rows
      return std::move(table);
    }
    mistyped.insert(mistyped.end(), more.begin(), more.end());
    // Assumes that the remaining rows are about as long as the rows read so far.
    const size_t rows = static_cast<size_t>(std::max<int64_t>(table.rows(), 1));
    likely_rows = text.size() / std::max<size_t>(reader->bytes_read() / rows, 2) + 1;
    limit = std::numeric_limits<int64_t>::max();
  }
}

Table read_table(const std::string& path, const std::string& format, bool skip_corrupt, const ColumnTypes& types) {
  const FileBytes file = read_file(path);
  Table table = read_table(text_of(file.bytes), path, format, skip_corrupt, types);
  table.digest = file.digest;
  return table;
}

}  // namespace sinew::data
