// Private to data/: encodes the columns of a table as input for a model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/data.h"
#include "data/kinds.h"
#include "data/table.h"

namespace sinew::data {

// How one column of the table becomes columns of the model's input.
struct Feature {
  std::string name;
  ColumnKind kind = ColumnKind::number;
  CellFormat cells;                      // how later files must write the column
  double fill = 0;                       // number, boolean, date: replaces a missing value; the median of train
  double std = 1, center = 0;            // number, boolean: (x - center) / std; date: the same for the days since 1970
  double year_std = 1, year_center = 0;  // date: the same for the year
  bool hours = false;                    // date: some training row has a time of day
  int32_t numeric_index = -1;            // number, boolean, date, text: the first input column
  int32_t missing_index = -1;            // the input column of the indicator "missing"; -1: train had no missing value
  // category, code: the input column of rare and unknown values; -1: train had no rare value
  int32_t other_index = -1;
  std::unordered_map<std::string, int32_t> category_index;  // category, code: the input column of each value

  bool by_value() const { return kind == ColumnKind::category || kind == ColumnKind::code; }
  bool has_indicator() const { return by_value() || missing_index >= 0; }
  size_t numeric_columns() const;  // number, boolean, date: how many numbers encode a value
};

// The encoding of a table. It is fitted on the training rows alone and applied to every split.
struct Encoding {
  std::vector<Feature> features;
  std::vector<std::string> names;  // the names of the input columns
  int64_t width() const { return static_cast<int64_t>(names.size()); }
};

// A column that may become input.
struct Candidate {
  std::string name;
  std::optional<ColumnKind> declared;  // the kind that the job declares
  bool listed = false;                 // data.columns.features names it
};
struct Fitted {
  Encoding encoding;
  std::vector<ColumnFacts> facts;  // one for each candidate
};
Fitted fit_encoding(const Table& table, const std::vector<int64_t>& rows, const std::vector<Candidate>& candidates,
                    bool normalize);

constexpr int32_t kTextInputs = 64;  // input columns of a text; the hash of a word chooses one

// Encoded rows in packed form. They hold the numbers for the numeric input columns, and the indices of the input
// columns that are 1. All other input columns are 0, except those of texts.
struct EncodedRows {
  struct Texts {
    std::vector<uint64_t> ends;  // for each row, the index in `words` after its last word
    std::vector<uint8_t> words;  // for each word, one of kTextInputs
  };
  std::vector<float> numbers;      // [rows, numeric columns of all features]
  std::vector<int32_t> one_hot;    // [rows, features that have an indicator]; -1: no indicator is 1
  std::vector<Texts> texts;        // for each text feature
  std::vector<std::string> notes;  // values that train does not have, one line for each column
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
  std::vector<int32_t> numeric_;  // input column of each number, in order
  std::vector<int32_t> texts_;    // first input column of each text
  size_t indicators_ = 0;         // number of features that have an indicator
};

// Writes the parts of a date as the model gets them: feature.numeric_columns() numbers.
void encode_date(const Feature& feature, double seconds, float* out);
// Returns the input (0 to kTextInputs - 1) of each word of a text.
std::vector<uint8_t> text_inputs(std::string_view text);
int64_t count_words(std::string_view text);

// Sorts by value if all names are numbers, otherwise as text.
void sort_names(std::vector<std::string>& names);

}  // namespace sinew::data
