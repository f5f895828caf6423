// Private to data/: finds out what a table's target column means (classes or numbers), and reads it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "data/data.h"
#include "data/table.h"
#include "data/target_rounding.h"

namespace sinew::data {

struct TargetSchema {
  Task task = Task::classification;
  std::string column;
  bool categorical = false;              // the column holds words, not numbers
  CellFormat cells;                      // how later files must write the target
  std::vector<std::string> class_names;  // sorted
  std::unordered_map<std::string, int64_t> class_of_word;
  std::vector<double> class_values;  // numeric classes, sorted: the index is the class
  std::string reason;                // why this task was chosen, if the job says auto
};
// The classes are those of the whole train file, including the rows that go to val or test. Which classes exist is not
// a statistic of the samples.
TargetSchema infer_target(const Table& train, const std::string& column, const std::string& task);

// The rows of a table that can be samples, with their targets.
struct Targets {
  std::vector<int64_t> rows;
  std::vector<int64_t> classes;  // classification: one for each of `rows`
  std::vector<float> numbers;    // regression: one for each of `rows`
  TargetRounding rounding;       // how much `numbers` lost when they were rounded to float32
  int64_t skipped = 0;
  std::string first_skipped;
};
// If a row has no target, or a class that train does not have, skips the row or throws Error naming its line.
Targets read_targets(const Table& table, const TargetSchema& schema, bool skip);

}  // namespace sinew::data
