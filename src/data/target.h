// Inside data/: what a table's target column means. Private to the room.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "data/data.h"
#include "data/table.h"

namespace sinew::data {

struct TargetRules {
  Task task = Task::classification;
  std::string column;
  bool words = false;                    // the column holds words, not numbers
  std::vector<std::string> class_names;  // sorted
  std::unordered_map<std::string, int64_t> words_to_class;
  std::vector<double> numbers_to_class;  // sorted: the class is the place
  std::string reason;                    // why, where the task was auto
};
// Classes are those of the whole train file, also where a split gives some of its rows to val: which classes exist is
// no statistic of the samples.
TargetRules decide_target(const Table& train, const std::string& column, const std::string& task);

// The rows of a table that can be samples, with their targets.
struct Targets {
  std::vector<int64_t> rows;
  std::vector<int64_t> classes;  // one a row kept; one of the two is empty
  std::vector<float> numbers;
  int64_t skipped = 0;
  std::string first_skipped;
};
// A row without a target, or of a class train has not, throws Error naming its line, or is skipped.
Targets read_targets(const Table& table, const TargetRules& rules, bool skip);

}  // namespace sinew::data
