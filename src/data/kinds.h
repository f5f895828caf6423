// Private to data/: decides what a column of a table means for a model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/cells.h"

namespace sinew::data {

enum class ColumnKind : uint8_t {
  number,
  code,        // whole numbers that name something: a region, a postcode; treated as a category
  category,    // words: one input for each frequent value
  boolean,     // 0 or 1
  date,        // several numbers: the year, the days that passed, and month, weekday and hour as points of a circle
  text,        // free text: counts of its words
  identifier,  // names a row, so no model can learn from it; left out
  constant,    // one value in all training rows; left out
  empty        // no value in any training row; left out
};
std::string_view to_string(ColumnKind kind);
std::optional<ColumnKind> kind_named(std::string_view name);
bool is_left_out(ColumnKind kind);
// Whether a column whose cells were read as `cells` can have this kind.
bool can_be_made_of(ColumnKind kind, CellKind cells);

// What the training rows say about a column.
struct ColumnStats {
  std::string name;
  CellKind cells = CellKind::word;
  int64_t rows = 0, missing = 0;
  int64_t different = 0;     // different values; counting numbers stops at kManyValues, unless the name is an id's
  bool whole = true;         // numbers: all are whole
  bool zero_or_one = false;  // numbers: all are 0 or 1
  double words_per_value = 1;
  int64_t given() const { return rows - missing; }
};
constexpr int64_t kManyValues = 1000;

struct KindChoice {
  ColumnKind kind = ColumnKind::number;
  std::string reason;
};
// Decides what a column means. `declared` is the kind that the job gives it, if any. If `listed`, data.columns.features
// names the column, so it is no identifier.
KindChoice judge_kind(const ColumnStats& stats, std::optional<ColumnKind> declared, bool listed);

// Returns whether a name is that of a column that numbers the rows: id, user_id, PassengerId, index, uuid.
bool names_identifier(const std::string& column);
// Returns whether a name is that of a column of codes: zip, product_code, class_type.
bool names_code(const std::string& column);

inline bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace sinew::data
