// Private to data/: decides which column of a table `sinew init` proposes to predict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/kinds.h"

namespace sinew::data {

// What the first rows say about a column.
struct ColumnSketch {
  std::string name;
  ColumnKind kind = ColumnKind::number;
  int64_t different = 0;  // different values
};

struct TargetChoice {
  std::string name;     // empty: it is not clear
  std::string reason;   // why this one; or why none, with the candidates
  std::string example;  // if none: the first candidate, or the first column
};
// Chooses the column `wanted`, which the user names, or the most likely one if `wanted` is empty. A choice by name
// needs one name that is usual for targets; a choice by position needs more than the position, for example that all
// other columns are numbers. Throws Error if there is no column `wanted`.
TargetChoice judge_target(const std::vector<ColumnSketch>& columns, const std::string& wanted);

}  // namespace sinew::data
