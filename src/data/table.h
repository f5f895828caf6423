// Private to data/: reads a table file into memory, and encodes it as input for a model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "data/data.h"

namespace sinew::data {

struct Column {
  std::string name;
  bool categorical = false;
  std::vector<double> numbers;          // numeric: one for each row; NaN: missing
  std::vector<int32_t> codes;           // categorical: one for each row, an index into `categories`; -1: missing
  std::vector<std::string> categories;  // in order of appearance
};

struct Table {
  std::string name;  // the path of the file
  Digest digest;
  std::vector<Column> columns;           // the columns that the caller asked for, in the file's order
  std::vector<int64_t> lines;            // the line of each row in the file
  int64_t skipped = 0;                   // rows that do not parse and were left out
  std::string first_skipped;             // the place of the first skipped row, and why it was skipped
  std::vector<std::string> all_columns;  // the names of all columns of the file

  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  const Column* find(std::string_view column) const;
  std::string place(int64_t row) const { return name + ':' + std::to_string(lines[static_cast<size_t>(row)]); }
};

enum class ColumnType {
  ignored,   // the column is left out
  inferred,  // numeric if every value is a number or missing, else categorical
  numeric,   // a value that is not a number is an error of its row
  categorical
};
// Returns the type that the caller wants for a column. The reader asks for each column once in each pass over the file.
using ColumnTypes = std::function<ColumnType(const std::string& column)>;

// `format`: csv, tsv or jsonl. If `skip_corrupt` is true, rows that do not parse are counted and left out; otherwise
// they throw Error.
Table read_table(const std::string& path, const std::string& format, bool skip_corrupt, const ColumnTypes& types);
Table read_table(std::string_view text, const std::string& name, const std::string& format, bool skip_corrupt,
                 const ColumnTypes& types);

// How one column of the table becomes columns of the model's input.
struct Feature {
  std::string name;
  bool categorical = false;
  double mean = 0, std = 1, center = 0;  // numeric: (x - center) / std; a missing value becomes the mean
  int32_t numeric_index = -1;            // numeric: the input column of the number
  int32_t missing_index = -1;            // the input column of the indicator "missing"; -1: train had no missing value
  std::unordered_map<std::string, int32_t> category_index;  // categorical: the one-hot input column of each category

  bool has_indicator() const { return categorical || missing_index >= 0; }
  float encode(double value) const { return static_cast<float>((value - center) / std); }
};

// The encoding of a table. It is fitted on the training rows alone and applied to every split.
struct Encoding {
  std::vector<Feature> features;
  std::vector<std::string> names;  // the names of the input columns
  int64_t width() const { return static_cast<int64_t>(names.size()); }
};
// `features`: names of columns, in order. `declared`: the columns that the user declared categorical; they may have
// up to 1,000 categories, however few rows each has.
Encoding fit_encoding(const Table& table, const std::vector<int64_t>& rows, const std::vector<std::string>& features,
                      const std::vector<std::string>& declared, bool normalize);

// Encoded rows in packed form. They hold the numbers for the numeric input columns, and the indices of the input
// columns that are 1. All other input columns are 0.
struct EncodedRows {
  std::vector<float> numbers;    // [rows, numeric features]
  std::vector<int32_t> one_hot;  // [rows, features that have an indicator]; -1: no indicator is 1
};
EncodedRows encode(const Table& table, const std::vector<int64_t>& rows, const Encoding& encoding);

// Knows where the values of EncodedRows belong in the input of a model.
class RowLayout {
 public:
  RowLayout() = default;
  explicit RowLayout(const Encoding& encoding);
  size_t numeric_columns() const { return numeric_.size(); }
  // Writes row `row` of `rows` to `out`, which holds zeros.
  void unpack(const EncodedRows& rows, size_t row, float* out) const;

 private:
  std::vector<int32_t> numeric_;  // input column of each numeric feature, in order
  size_t indicators_ = 0;         // number of features that have an indicator
};

// Sorts by value if all names are numbers, otherwise as text.
void sort_names(std::vector<std::string>& names);

}  // namespace sinew::data
