// Private to data/: decides which samples of the train file become validation and test data. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/data.h"

namespace sinew::data {

// The samples of the train file that each split gets, in file order. Folds in the order of time leave later samples
// out.
struct SplitIndices {
  std::vector<int64_t> train, val, test;
};

struct SplitRequest {
  int64_t size = 0;          // samples of the train file
  double val = 0, test = 0;  // fractions; 0: the split has files of its own, or there is no such split
  uint64_t seed = 0;
  // At most one of these decides; if none is given, a keyed permutation alone decides. Each has one entry for a sample.
  std::span<const int64_t> classes = {};  // every class keeps its share in every split (stratified)
  std::span<const int64_t> groups = {};   // samples of one group (0, 1, 2, ...) stay in one split
  std::span<const double> times = {};     // the last samples are test, those before them validation
  // Cross-validation: the samples that are not test are divided into so many folds, and this one is validation.
  int64_t folds = 0, fold = 0;

  bool takes_any() const { return val > 0 || test > 0 || folds > 0; }
};

// Returns a request with the fractions and the fold of data.split. A split with files of its own takes no samples.
SplitRequest split_request(const spec::DataOptions& options, int64_t size, uint64_t seed);

// A function of the request alone. The sizes of the splits are the fractions, rounded, except for groups: there a split
// ends with the group that fills it. A class with one sample stays in train, and so does at least one sample of every
// class and at least one group. Samples of equal time keep their order in the file. folds.h says how folds are made.
// Throws Error if there are fewer samples or groups than folds.
SplitIndices split_samples(const SplitRequest& request);

// Does the same, and adds sentences for the user: about the fold of the request, and about classes with fewer samples
// than folds.
SplitIndices split_samples(const SplitRequest& request, std::vector<std::string>& notes);

// Sets info.class_counts from the classes of the training samples; info.classes is known.
void count_classes(std::span<const int64_t> classes, DataInfo& info);

}  // namespace sinew::data
