// Private to data/: reads the targets of the array formats (IDX, CIFAR, NumPy).
#pragma once

#include <string>
#include <vector>

#include "data/arrays.h"
#include "data/target_rounding.h"

namespace sinew::data {

// What the targets of train mean. The targets of the other splits must fit it.
struct LabelSchema {
  Task task = Task::classification;
  Shape shape;          // the shape of one sample's target
  int64_t classes = 0;  // classification: the largest label of train + 1
  std::string reason;   // why this task was chosen, if the job says auto
};
LabelSchema infer_labels(const FileArray& train, const std::string& task);

// Only one of the two vectors is filled. It holds the targets of all rows of the file, one after another.
struct Labels {
  std::vector<int64_t> classes;
  std::vector<float> numbers;
  std::vector<TargetRounding> rounding;  // how much each number of a target lost when it was rounded to float32
};
// Throws Error naming the first target that does not follow the schema ("labels.gz[17]: ...").
Labels read_labels(const FileArray& targets, const LabelSchema& schema);

}  // namespace sinew::data
