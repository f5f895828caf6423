// Private to data/: decides which samples of the train file become validation and test data. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/data.h"

namespace sinew::data {

// The samples of the train file that each split gets, in file order.
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
};

// A function of the request alone. The sizes of the splits are the fractions, rounded, except for groups: there a split
// ends with the group that fills it. A class with one sample stays in train, and so does at least one sample of every
// class and at least one group. Samples of equal time keep their order in the file.
SplitIndices split_samples(const SplitRequest& request);

// Sets info.class_counts from the classes of the training samples; info.classes is known.
void count_classes(std::span<const int64_t> classes, DataInfo& info);

}  // namespace sinew::data
