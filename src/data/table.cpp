#include "data/table.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/printable.h"
#include "data/text_folder.h"

namespace sinew::data {
namespace {

constexpr size_t kFreeCells = 1 << 20;  // a table may hold this many cells, plus one for each byte of its files
constexpr size_t kMostNotes = 20;       // the most notes about the names in one file
constexpr double kMissingNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = std::numeric_limits<float>::max(), kMostFinite = std::numeric_limits<double>::max();
constexpr size_t kNoField = ~size_t{0};

// Why a row was not added.
struct Fault {
  std::string what, hint;  // no hint if such rows are skipped, because there may be many
  size_t cell = kNoField;  // kNoField: the row as a whole does not parse
};

// Makes room for `size` values. Grows at least twofold: if each of many files made room for its own rows alone, the
// rows of the files before it would move each time.
template <typename Value>
void make_room(std::vector<Value>& values, size_t size) {
  if (size > values.capacity()) values.reserve(std::max(size, 2 * values.capacity()));
}

// Decides how the cells of the columns are read.
class FormatChooser {
 public:
  // `plain`: the file has one way to write numbers (JSON, Parquet).
  FormatChooser(const TableRequest& request, const CellWishes& wishes, NumberStyle numbers, bool plain,
                const FirstRows& first)
      : request_(request), wishes_(wishes), numbers_(numbers), plain_(plain), first_(first) {
    for (size_t i = 0; i < first.names.size(); ++i) index_.emplace(first.names[i], i);
  }

  // Returns nullopt if the column is ignored. Returns a judgement without a format if the column's first cell decides.
  std::optional<CellJudgement> choose(const std::string& table, const std::string& column) const {
    const CellWish wish = wishes_(column);
    if (wish.read == CellWish::Read::ignored) return std::nullopt;
    if (wish.read == CellWish::Read::fixed) {
      CellFormat format = wish.format;
      if (plain_) format = {format.kind, {}, "", format.date};
      return CellJudgement{format, ""};
    }
    const auto found = index_.find(column);
    const std::span<const CellSample> cells =
        found == index_.end() ? std::span<const CellSample>() : first_.cells[found->second];
    if (wish.read == CellWish::Read::declared) {
      CellJudgement judged = judge_declared(wish.format.kind, cells, numbers_, request_.options.dates);
      if (!judged.format) refuse_dates(table + ": column '" + column + "'", judged.doubt, cells[0].text);
      return judged;
    }
    if (wish.read == CellWish::Read::inferred && is_row_index(first_, column)) return std::nullopt;
    CellJudgement judged = judge_cells(column, cells, numbers_, request_.options.dates);
    if (wish.read == CellWish::Read::target) make_target(judged);
    if (judged.format && first_.rows == kFirstRows) judged.reason += ", judged by the first 1,000 rows";
    return judged;
  }

  // Decides a column without values in the first rows from its first cell.
  CellJudgement choose_by(const std::string& column, const Field& field) const {
    const CellSample sample{std::string(field.text), field.kind == Field::Kind::text};
    CellJudgement judged = judge_cells(column, {&sample, 1}, numbers_, request_.options.dates);
    if (wishes_(column).read == CellWish::Read::target) make_target(judged);
    judged.reason = "its first value is " + described(*judged.format);
    return judged;
  }

 private:
  // A target is a number or a class, and a class is a word.
  static void make_target(CellJudgement& judged) {
    judged.doubt.clear();
    if (judged.format && judged.format->kind != CellKind::number) judged.format->kind = CellKind::word;
  }

  [[noreturn]] static void refuse_dates(const std::string& column, const std::string& conflict,
                                        const std::string& example) {
    if (!conflict.empty())
      throw Error("DATA_BAD_COLUMN", column + ": " + conflict,
                  "change data.table.dates, or take the column out of data.columns.date");
    throw Error("DATA_BAD_COLUMN",
                column + ": no value is a date that Sinew knows, for example '" + printable_start(example) + "'",
                "write dates as 2024-05-31, or take the column out of data.columns.date");
  }

  const TableRequest& request_;
  const CellWishes& wishes_;
  const NumberStyle numbers_;
  const bool plain_;
  const FirstRows& first_;
  std::unordered_map<std::string, size_t> index_;
};

// Fills the columns row by row.
class TableBuilder {
 public:
  TableBuilder(Table& table, const TableRequest& request, const FormatChooser& chooser)
      : table_(table), request_(request), chooser_(chooser) {}

  // `rows` is the expected number of rows of this file.
  void begin_file(const std::string& path, size_t bytes, size_t rows) {
    table_.files.push_back(path);
    table_.first_rows.push_back(table_.rows());
    bytes_ += bytes;
    rows_ = table_.lines.size() + rows;
    make_room(table_.lines, rows_);
    for (Slot& slot : slots_) slot.field = kNoField;
    for (size_t i = 0; i < slots_.size(); ++i) reserve(table_.columns[i]);
    fields_ = 0;
  }

  // Adds the row, unless it has a fault.
  std::optional<Fault> add(const Row& row, const RowReader& reader) {
    for (; fields_ < reader.columns().size(); ++fields_) open_field(reader.columns()[fields_], fields_);
    check_cells(row);
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      Column& column = table_.columns[i];
      const Field& field = slot.field < row.fields.size() ? row.fields[slot.field] : kAbsent;
      const bool missing =
          field.kind == Field::Kind::missing || (field.kind == Field::Kind::plain && is_missing(field.text));
      if (!missing && slot.undecided) decide(slot, column, field);
      std::string problem;
      if (column.categorical) {
        column.codes.push_back(missing ? -1 : code_of(slot, column, field.text));
      } else {
        column.numbers.push_back(missing ? kMissingNumber : number_of(column, field, problem));
      }
      if (problem.empty()) continue;
      if (!request_.bad_cells_missing) {
        drop_row();
        return Fault{"column '" + column.name + "' " + problem,
                     request_.skip_corrupt ? "" : bad_cell_hint(request_, column, field.text), slot.field};
      }
      if (column.bad++ == 0) column.first_bad = place_of(row, reader, slot.field) + ": " + problem;
    }
    table_.lines.push_back(row.line);
    return std::nullopt;
  }

  std::string place_of(const Row& row, const RowReader& reader, size_t cell) const {
    return table_.files.back() + ':' + (cell == kNoField ? std::to_string(row.line) : reader.place_of(row, cell));
  }

 private:
  static constexpr Field kAbsent{{}, Field::Kind::missing};

  struct Slot {
    size_t field = kNoField;        // index into the fields of a row of this file
    bool undecided = false;         // no cell so far has a value
    int32_t last = -1;              // the code of the previous value, because values often repeat
    std::deque<std::string> words;  // backing store for the keys of `codes`
    std::unordered_map<std::string_view, int32_t> codes;
  };

  size_t max_cells() const { return kFreeCells + bytes_; }

  void reserve(Column& column) const {
    if (rows_ * table_.columns.size() > max_cells()) return;
    column.categorical ? make_room(column.codes, rows_) : make_room(column.numbers, rows_);
  }

  void check_cells(const Row& row) const {
    if ((table_.lines.size() + 1) * table_.columns.size() <= max_cells()) return;
    throw Error("DATA_TOO_MANY_COLUMNS",
                table_.files.back() + ':' + std::to_string(row.line) + ": the file has " +
                    std::to_string(table_.columns.size()) +
                    " different keys up to here, and most lines lack most of them",
                "name the columns that matter in data.columns.features");
  }

  // Opens a field of a file. An ignored column stores only its name and no cells, because a file may have a new column
  // on every line.
  void open_field(const std::string& name, size_t field) {
    const auto [found, added] = table_.index.emplace(name, slots_.size());
    if (!added) {
      if (found->second != Table::kIgnored) slots_[found->second].field = field;
      return;
    }
    table_.all_columns.push_back(name);
    auto chosen = chooser_.choose(table_.name, name);
    if (!chosen) {
      found->second = Table::kIgnored;
      return;
    }
    Slot& slot = slots_.emplace_back();
    slot.field = field;
    slot.undecided = !chosen->format.has_value();
    Column& column = table_.columns.emplace_back();
    column.name = name;
    column.format = chosen->format.value_or(CellFormat{CellKind::number});
    column.categorical = column.format.kind == CellKind::word;
    column.reason = std::move(chosen->reason);
    column.doubt = std::move(chosen->doubt);
    reserve(column);
    // The rows before the first row that has this key have no value in the column.
    column.categorical ? column.codes.resize(table_.lines.size(), -1)
                       : column.numbers.resize(table_.lines.size(), kMissingNumber);
  }

  void decide(Slot& slot, Column& column, const Field& field) {
    slot.undecided = false;
    CellJudgement judged = chooser_.choose_by(column.name, field);
    column.format = *judged.format;
    column.reason = std::move(judged.reason);
    column.doubt = std::move(judged.doubt);
    if (column.format.kind != CellKind::word) return;
    column.categorical = true;
    column.codes.assign(column.numbers.size(), -1);
    column.numbers = {};
  }

  static int32_t code_of(Slot& slot, Column& column, std::string_view text) {
    if (slot.last >= 0 && column.categories[static_cast<size_t>(slot.last)] == text) return slot.last;
    if (const auto found = slot.codes.find(text); found != slot.codes.end()) return slot.last = found->second;
    slot.last = static_cast<int32_t>(column.categories.size());
    column.categories.emplace_back(text);
    slot.codes.emplace(slot.words.emplace_back(text), slot.last);
    return slot.last;
  }

  double number_of(const Column& column, const Field& field, std::string& problem) const {
    const bool training = request_.reader == TableRequest::Reader::training;
    const bool word =
        training && field.kind == Field::Kind::text && column.format.kind == CellKind::number && !column.format.strings;
    const auto number = word ? std::nullopt : parse_cell(field.text, column.format);
    // Training computes with float32. A prediction for a larger number says itself that the model overflows.
    const double most = training ? kLargest : kMostFinite;
    if (number && std::abs(*number) <= most) return *number;
    problem = number ? "holds " + printable_start(field.text) +
                           (std::isfinite(*number) ? ", which is beyond the range of 32-bit numbers (3.4e38)"
                                                   : ", which is not a finite number")
                     : "holds '" + printable_start(field.text) + "', which is not " + described(column.format);
    const std::string both = column.reason.empty() || column.doubt.empty() ? "" : "; ";
    if (const std::string why = column.reason + both + column.doubt; !number && !why.empty())
      problem += " (" + why + ")";
    return kMissingNumber;
  }

  void drop_row() {  // removes the values that the row has added so far
    for (Column& column : table_.columns) {
      column.categorical ? column.codes.resize(table_.lines.size(), -1)
                         : column.numbers.resize(table_.lines.size(), kMissingNumber);
    }
  }

  Table& table_;
  const TableRequest& request_;
  const FormatChooser& chooser_;
  size_t rows_ = 0, bytes_ = 0, fields_ = 0;
  std::deque<Slot> slots_;  // one for each column of the table
};

void refuse(const Row& row, const Fault& fault, const TableBuilder& builder, const RowReader& reader) {
  const std::string what = builder.place_of(row, reader, fault.cell) + ": " + fault.what;
  if (fault.cell == kNoField) throw Error("DATA_BAD_ROW", what, fault.hint);
  throw Error("DATA_BAD_CELL", what, fault.hint);
}

void read_rows(RowReader& reader, const TableRequest& request, TableBuilder& builder, Table& table) {
  Row row;
  while (reader.next(row)) {
    if (row.quoted_rows > 0) {
      if (table.quoted_rows == 0) table.first_quoted = builder.place_of(row, reader, kNoField);
      table.quoted_rows += row.quoted_rows;
    }
    std::optional<Fault> fault;
    if (row.problem.empty()) {
      fault = builder.add(row, reader);
    } else {
      fault = Fault{row.problem, request.skip_corrupt ? "" : bad_row_hint(request)};
    }
    if (!fault) continue;
    if (!request.skip_corrupt) refuse(row, *fault, builder, reader);
    if (table.skipped++ == 0) table.first_skipped = builder.place_of(row, reader, fault->cell) + ": " + fault->what;
  }
}

void note_header(const TableHeader& header, const std::string& path, Table& table) {
  const std::string place = file_name(path) + ':' + std::to_string(header.line) + ": ";
  for (size_t i = 0; i < header.changes.size() && i < kMostNotes; ++i) table.notes.push_back(place + header.changes[i]);
  if (header.changes.size() > kMostNotes)
    table.notes.push_back(place + std::to_string(header.changes.size() - kMostNotes) +
                          " more names were changed in the same ways");
}

// Throws Error unless a later file has the columns of the first one, in any order.
void check_same_columns(const std::vector<std::string>& columns, const std::vector<std::string>& first,
                        const std::string& path, const std::string& first_path) {
  const auto differs = [&](const std::string& what) {
    throw Error("DATA_COLUMNS_DIFFER", path + ":1: " + what + " " + first_path,
                "files of one table need the same columns, in any order; correct the header, or name only files that "
                "belong together");
  };
  const std::set<std::string> known(first.begin(), first.end()), here(columns.begin(), columns.end());
  for (const std::string& name : first) {
    if (!here.contains(name)) differs("has no column '" + name + "', unlike");
  }
  for (const std::string& name : columns) {
    if (!known.contains(name)) differs("has the column '" + name + "', unlike");
  }
}

// Reads the files of one table, one after another.
class TableReader {
 public:
  TableReader(const std::string& name, const TableRequest& request, const CellWishes& wishes)
      : request_(request), wishes_(wishes) {
    table_.name = name;
  }

  void add(const TableText& text) {
    if (!text.said.empty()) table_.notes.push_back(text.said);
    const auto reader = reader_of(text, later_request());
    if (!builder_) begin(text);
    if (request_.format != "jsonl" && request_.format != kTextFolder && !table_.files.empty())
      check_same_columns(reader->columns(), table_.all_columns, text.path, table_.files.front());
    note_header(reader->header(), text.path, table_);
    // Assumes that all rows are about as long as the first ones.
    const size_t a_row = std::max<size_t>(first_.bytes / static_cast<size_t>(std::max<int64_t>(first_.rows, 1)), 2);
    builder_->begin_file(text.path, text.bytes.size(), text.bytes.size() / a_row + 1);
    read_rows(*reader, request_, *builder_, table_);
    if (table_.all_columns.empty()) table_.all_columns = reader->columns();  // the file has no rows
  }

  // The request for the next file: the first file decides the style.
  TableRequest later_request() const {
    TableRequest later = request_;
    if (!table_.files.empty()) later.style = &table_.style;
    return later;
  }

  Table take() {
    for (const Column& column : table_.columns) {
      if (column.bad > 0)
        table_.notes.push_back("column '" + printable_start(column.name) + "': " + with_commas(column.bad) +
                               (column.bad == 1 ? " cell that does not fit counts" : " cells that do not fit count") +
                               " as missing, the first: " + column.first_bad);
    }
    if (table_.quoted_rows > 0)
      table_.notes.push_back(table_.first_quoted + ": a cell in quotes goes on over " +
                             with_commas(table_.quoted_rows) +
                             " lines that look like rows, and they are read as part of the cell; if they are rows, a "
                             "quote here is one too many");
    return std::move(table_);
  }

 private:
  void begin(const TableText& text) {
    table_.style = text.dialect.style;
    const auto preview = reader_of(text, request_);
    first_ = read_first_rows(*preview);
    if (first_.first_is_row_index && wishes_(first_.names[0]).read == CellWish::Read::inferred)
      table_.notes.push_back(file_name(text.path) + ':' + std::to_string(preview->header().line) +
                             ": the first column has no name and counts the rows, so it is "
                             "left out (pandas writes it unless to_csv has index=False)");
    chooser_.emplace(request_, wishes_, table_.style.numbers, text.typed || request_.format == "jsonl", first_);
    builder_.emplace(table_, request_, *chooser_);
  }

  const TableRequest& request_;
  const CellWishes& wishes_;
  Table table_;
  FirstRows first_;
  std::optional<FormatChooser> chooser_;
  std::optional<TableBuilder> builder_;
};

}  // namespace

const Column* Table::find(const std::string& column) const {
  const auto found = index.find(column);
  return found == index.end() || found->second == kIgnored ? nullptr : &columns[found->second];
}

size_t Table::file_of(int64_t row) const {
  const auto next = std::upper_bound(first_rows.begin(), first_rows.end(), row);
  return static_cast<size_t>(next - first_rows.begin()) - 1;
}

std::string Table::place(int64_t row) const {
  return files[file_of(row)] + ':' + std::to_string(lines[static_cast<size_t>(row)]);
}

Table read_table(std::string_view text, const std::string& name, const TableRequest& request,
                 const CellWishes& wishes) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  TableReader reader(name, request, wishes);
  reader.add(decode_table(name, {begin, begin + text.size()}, true, request));
  return reader.take();
}

Table read_table(const std::string& path, const TableRequest& request, const CellWishes& wishes) {
  TableReader reader(path, request, wishes);
  std::vector<Digest> digests;
  const std::vector<std::string> files = table_files(path, request.format);
  for (const std::string& file : files) {
    FileBytes bytes = read_file(file);
    digests.push_back(bytes.digest);
    if (request.format == kTextFolder) digests.push_back(digest_of(label_of_text(file) + '/' + file_name(file)));
    reader.add(decode_table(file, std::move(bytes.bytes), true, reader.later_request()));
  }
  Table table = reader.take();
  table.of_texts = request.format == kTextFolder;
  table.digest = digests.size() == 1 ? digests.front() : digest_of(digests);
  const std::string said = request.format == kTextFolder ? said_of_texts(path, files) : said_of_files(path, files);
  if (!said.empty()) table.notes.insert(table.notes.begin(), said);
  return table;
}

}  // namespace sinew::data
