// Private to data/: reads the files of a table into memory. encoding.h makes input for a model of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "data/cells.h"
#include "data/data.h"
#include "data/rows.h"
#include "data/table_files.h"

namespace sinew::data {

struct Column {
  std::string name;
  bool categorical = false;             // the cells are words
  CellFormat format;                    // how the cells were read
  std::string reason;                   // why they were read so; empty: the caller fixed it
  std::string doubt;                    // see CellJudgement
  std::vector<double> numbers;          // not categorical: one for each row; NaN: missing
  std::vector<int32_t> codes;           // categorical: one for each row, an index into `categories`; -1: missing
  std::vector<std::string> categories;  // in order of appearance
  int64_t bad = 0;                      // cells that do not fit the format and count as missing
  std::string first_bad;                // the place and the value of the first of them
};

struct Table {
  std::string name;  // the path that the caller gave
  Digest digest;
  TableStyle style;
  bool of_texts = false;        // each row is a file of a text_folder
  std::vector<Column> columns;  // the columns that the caller asked for, in the order of the file
  // The place in `columns` of each name in the files; kIgnored for the columns that the caller did not ask for.
  std::unordered_map<std::string, size_t> index;
  std::vector<int64_t> lines;            // the line of each row in its file
  std::vector<std::string> files;        // in the order of the rows
  std::vector<int64_t> first_rows;       // the first row of each file
  int64_t skipped = 0;                   // rows that do not parse and were left out
  std::string first_skipped;             // the place of the first skipped row, and why it was skipped
  int64_t quoted_rows = 0;               // lines within the quotes of cells that look like rows
  std::string first_quoted;              // the place of the first such cell
  std::vector<std::string> all_columns;  // the names of all columns of the files
  std::vector<std::string> notes;        // what the user should know: the dialect, changed names, ...

  static constexpr size_t kIgnored = ~size_t{0};
  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  const Column* find(const std::string& column) const;  // nullptr if there is none
  size_t file_of(int64_t row) const;                    // an index into `files`
  std::string place(int64_t row) const;
};

// What the caller wants to know about a column.
struct CellWish {
  enum class Read : uint8_t {
    ignored,   // the column is left out
    inferred,  // its first rows decide
    target,    // its first rows decide between numbers and words
    declared,  // the user has declared `format.kind`; the first rows decide the rest of the format
    fixed      // `format`
  } read = Read::inferred;
  CellFormat format = {};
};
inline CellWish declared(CellKind kind) {
  return {CellWish::Read::declared, {kind}};
}
// The reader asks for each column once.
using CellWishes = std::function<CellWish(const std::string& column)>;

// Reads all files of a path. The formats of the columns come from the first 1,000 rows of the first file. Throws Error
// with the file, the line and the column of the cell that does not fit.
Table read_table(const std::string& path, const TableRequest& request, const CellWishes& wishes);
// Reads one text as if it were the file `name`.
Table read_table(std::string_view text, const std::string& name, const TableRequest& request, const CellWishes& wishes);

// ---- hints ---------------------------------------------------------------------------------------------------------

// What the reader of the error can do about a line that does not parse, and about a cell that does not fit its column.
std::string bad_row_hint(const TableRequest& request);
std::string bad_cell_hint(const TableRequest& request, const Column& column, std::string_view text);

// ---- the first rows ------------------------------------------------------------------------------------------------

struct FirstRows {
  std::vector<std::string> names;
  std::vector<std::vector<CellSample>> cells;  // the cells of each column, without missing ones
  int64_t rows = 0;
  std::string first_problem;  // "LINE: what is wrong" with the first row that does not parse
  size_t bytes = 0;           // that these rows take in the file
  // The first column holds 0, 1, 2, ... or 1, 2, 3, ... and has no name, or the name that pandas gives: "Unnamed: 0".
  bool first_is_row_index = false;
};
// Returns whether the column only counts or names the rows: the first one, or an index that pandas writes into a
// Parquet file (__index_level_0__).
bool is_row_index(const FirstRows& first, const std::string& column);
constexpr int64_t kFirstRows = 1000;
std::unique_ptr<RowReader> reader_of(const TableText& text, const TableRequest& request);
// If `whole` is false, the text may end within a row, which is then left out.
FirstRows read_first_rows(RowReader& reader, bool whole = true);

}  // namespace sinew::data
