// Inside data/: a table file in memory, and what a model sees of it. Private to the room.
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
  std::vector<double> numbers;          // one a row; NaN: missing
  std::vector<int32_t> codes;           // one a row, into categories; -1: missing
  std::vector<std::string> categories;  // in order of appearance
};

struct Table {
  std::string name;  // the file's path
  Digest digest;
  std::vector<Column> columns;   // those asked for, in the file's order
  std::vector<int64_t> lines;    // of each row in the file
  int64_t skipped = 0;           // rows that do not parse, left out
  std::string first_skipped;     // the first of them and why
  std::vector<std::string> all;  // every column of the file

  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  const Column* find(std::string_view column) const;
  std::string place(int64_t row) const { return name + ':' + std::to_string(lines[static_cast<size_t>(row)]); }
};

enum class Use {
  skip,     // leave the column out
  guess,    // numbers if every value is one or missing, else categories
  numbers,  // a value that is no number is an error of its row
  categories
};
// What to do with a column of this name, asked once for each.
using ColumnUse = std::function<Use(const std::string& column)>;

// `format`: csv, tsv or jsonl. `skip_corrupt`: rows that do not parse are left out and counted instead of thrown.
Table read_table(const std::string& path, const std::string& format, bool skip_corrupt, const ColumnUse& use);
Table read_table(std::string_view text, const std::string& name, const std::string& format, bool skip_corrupt,
                 const ColumnUse& use);

// What one feature of the table becomes in the model's input.
struct Feature {
  std::string name;
  bool categorical = false;
  double mean = 0, std = 1, center = 0;             // numbers: (x - center) / std; missing ones become the mean
  int32_t number_at = -1;                           // numbers: place in the input
  int32_t missing_at = -1;                          // place of the 1 that says "missing"; -1: train had none
  std::unordered_map<std::string, int32_t> places;  // categories: place of each one's 1

  bool sets_ones() const { return categorical || missing_at >= 0; }
  float encode(double value) const { return static_cast<float>((value - center) / std); }
};

// Learned from the training rows alone and applied to every part.
struct Encoding {
  std::vector<Feature> features;
  std::vector<std::string> names;  // of the input's columns
  int64_t width() const { return static_cast<int64_t>(names.size()); }
};
// `features`: names of columns, in order. `chosen`: columns the user declared categorical (any number of values goes).
Encoding learn_encoding(const Table& table, const std::vector<int64_t>& rows, const std::vector<std::string>& features,
                        const std::vector<std::string>& chosen, bool normalize);

// Rows as the model sees them, packed: numbers to be put at fixed places, and places of ones.
struct EncodedRows {
  std::vector<float> numbers;  // [rows, numeric features]
  std::vector<int32_t> ones;   // [rows, features that may set a one]; -1: none
};
EncodedRows encode(const Table& table, const std::vector<int64_t>& rows, const Encoding& encoding);

// By value where all are numbers, else by name.
void sort_names(std::vector<std::string>& names);

}  // namespace sinew::data
