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

constexpr int64_t kGuessRows = 1000;
constexpr size_t kFreeCells = 1 << 20;  // beyond them a table holds one cell a byte of its file at most
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Fills the columns row by row. Columns to be guessed are taken for numbers until a value proves otherwise.
class Builder {
 public:
  // `rows`: how many are likely to come; room is made for them at once. `most_cells`: more are refused.
  Builder(const std::string& name, const ColumnUse& use, size_t rows, size_t most_cells)
      : use_(use), rows_(rows), most_cells_(most_cells) {
    table_.name = name;
    table_.lines.reserve(rows);
  }

  // Sets row.problem where a value does not fit its column; the row is then not added.
  void add(Row& row, const std::vector<std::string>& columns) {
    for (size_t i = table_.all.size(); i < columns.size(); ++i) open_column(columns[i], i);
    if ((table_.lines.size() + 1) * table_.columns.size() > most_cells_) {
      throw Error(table_.name + ':' + std::to_string(row.line) + ": " + std::to_string(table_.columns.size()) +
                      " different keys so far, nearly all of them missing in nearly all lines",
                  "name the columns that matter as data.columns.features");
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

  bool any_words() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.words; });
  }
  // Columns that were guessed to be numbers and are not, by name.
  std::vector<std::string> columns_of_words() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].words) names.push_back(table_.columns[i].name);
    }
    return names;
  }
  Table& table() { return table_; }

 private:
  struct Slot {
    size_t field = 0;  // of the row
    bool guess = false;
    bool words = false;  // guessed, and a value was no number
    int32_t last = -1;   // code of the value before: values come in runs
    std::deque<std::string> words_seen;
    std::unordered_map<std::string_view, int32_t> codes;
  };

  // One that is skipped costs its name, and the rows nothing: there may be as many as lines.
  void open_column(const std::string& name, size_t field) {
    table_.all.push_back(name);
    const Use use = use_(name);
    if (use == Use::skip) return;
    Slot& slot = slots_.emplace_back();
    slot.field = field;
    slot.guess = use == Use::guess;
    Column& column = table_.columns.emplace_back();
    column.name = name;
    column.categorical = use == Use::categories;
    if (rows_ * table_.columns.size() <= most_cells_) {
      column.categorical ? column.codes.reserve(rows_) : column.numbers.reserve(rows_);
    }
    // A key that first comes in a later row was missing in those before.
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
    slot.codes.emplace(slot.words_seen.emplace_back(text), slot.last);
    return slot.last;
  }

  static double number_of(Slot& slot, const Field& field, std::string& problem) {
    if (slot.words) return kMissing;  // the table is read again with this column as categories
    const auto number = field.kind == Field::Kind::text ? std::nullopt : parse_number(field.text);
    if (number && std::isfinite(*number)) return *number;
    if (number) {
      problem = "holds " + printable_start(field.text) + ", which is no finite number";
    } else if (slot.guess) {
      slot.words = true;
    } else {
      problem = "holds '" + printable_start(field.text) + "', which is no number";
    }
    return kMissing;
  }

  void drop_row() {  // what the row has added so far
    for (Column& column : table_.columns) {
      column.categorical ? column.codes.resize(table_.lines.size(), -1)
                         : column.numbers.resize(table_.lines.size(), kMissing);
    }
  }

  const ColumnUse& use_;
  const size_t rows_, most_cells_;
  Table table_;
  std::deque<Slot> slots_;  // one a column of the table
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
                 const ColumnUse& use) {
  std::vector<std::string> words;  // columns found to hold no numbers
  const ColumnUse known = [&](const std::string& column) {
    const Use wanted = use(column);
    return wanted == Use::guess && std::find(words.begin(), words.end(), column) != words.end() ? Use::categories
                                                                                                : wanted;
  };
  // A short look first: it finds most columns of words, so that the whole file is rarely read twice.
  size_t likely_rows = std::min<size_t>(kGuessRows, text.size() / 16);
  for (int64_t limit = kGuessRows;;) {
    const auto reader = reader_of(text, name, format);
    Builder builder(name, known, likely_rows, kFreeCells + text.size());
    Table& table = builder.table();
    Row row;
    bool ended = true;
    while (reader->next(row)) {
      if (row.problem.empty()) builder.add(row, reader->columns());
      if (!row.problem.empty()) {
        const std::string what = name + ':' + std::to_string(row.line) + ": " + row.problem;
        if (!skip_corrupt) throw Error(what, "correct the line, or leave such lines out with data.on_corrupt: skip");
        if (table.skipped++ == 0) table.first_skipped = what;
      }
      if (table.rows() >= limit) {
        ended = false;
        break;
      }
    }
    if (ended && !builder.any_words()) {
      if (table.all.empty()) table.all = reader->columns();  // no row at all
      return std::move(table);
    }
    const auto more = builder.columns_of_words();
    words.insert(words.end(), more.begin(), more.end());
    // Rows are about as long as those seen.
    const size_t rows = static_cast<size_t>(std::max<int64_t>(table.rows(), 1));
    likely_rows = text.size() / std::max<size_t>(reader->bytes_read() / rows, 2) + 1;
    limit = std::numeric_limits<int64_t>::max();
  }
}

Table read_table(const std::string& path, const std::string& format, bool skip_corrupt, const ColumnUse& use) {
  const FileBytes file = read_file(path);
  Table table = read_table(text_of(file.bytes), path, format, skip_corrupt, use);
  table.digest = file.digest;
  return table;
}

}  // namespace sinew::data
