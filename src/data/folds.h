// Private to data/: divides samples into the folds of a cross-validation. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "data/splits.h"

namespace sinew::data {

struct Fold {
  std::vector<int64_t> train, val;  // ascending
};

// Returns the training and the validation samples of request.fold. `samples` are the samples that are not test data,
// ascending. Each of them is in exactly one fold, whose sizes differ by at most one sample:
// - by classes, as scikit-learn's StratifiedKFold: the counts of each class differ by at most one, too;
// - by groups, as GroupKFold: the largest group that is left goes to the smallest fold. The sizes may differ more.
// - by times, as TimeSeriesSplit: the samples are cut into folds + 1 equal parts, in the order of time. A fold is one
// of
//   the later parts, and only the samples before it train. The earliest part is in no fold.
// Throws Error if there are too few samples or groups.
Fold take_fold(const SplitRequest& request, const std::vector<int64_t>& samples);

}  // namespace sinew::data
