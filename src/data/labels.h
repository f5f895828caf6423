// Inside data/: targets of array formats. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "data/arrays.h"

namespace sinew::data {

// What train's targets mean, and what the other splits' must obey.
struct LabelRules {
  Task task = Task::classification;
  Shape shape;          // of one sample's target
  int64_t classes = 0;  // classification: largest label of train + 1
  std::string reason;   // why, where the task was auto
};
LabelRules decide_labels(const FileArray& train, const std::string& task);

struct Labels {  // one of the two, of every row of the file
  std::vector<int64_t> classes;
  std::vector<float> numbers;
};
// Throws Error naming the first target that breaks the rules ("labels.gz[17]: …").
Labels read_labels(const FileArray& targets, const LabelRules& rules);

}  // namespace sinew::data
