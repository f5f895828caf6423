// Inside data/: a data set of arrays, ready to load: what its maker decides and its loader reads. Private to the room.
#pragma once

#include <memory>
#include <vector>

#include "data/arrays.h"
#include "data/labels.h"

namespace sinew::data {

inline size_t index_of(Split split) {
  return static_cast<size_t>(split);
}

struct ArraySamples {
  std::shared_ptr<const ArraySplit> arrays;  // shared by the splits split from one file
  std::vector<int64_t> samples;              // rows of the file; empty with `whole`
  bool whole = false;                        // every row, in order
  Labels labels;                             // of the file's rows
  int64_t size() const { return whole ? arrays->inputs.rows() : static_cast<int64_t>(samples.size()); }
  int64_t row(int64_t sample) const { return whole ? sample : samples[static_cast<size_t>(sample)]; }
};

struct ArrayContents {
  DataInfo info;
  spec::AugmentOptions augment;
  ArraySamples splits[3];
  bool per_element = false;          // rows of columns: one mean a column, not a channel
  int64_t area = 1;                  // elements of one channel
  double unit = 1;                   // 255 for bytes: what 1.0 is called in the file
  std::vector<double> mean, factor;  // in the file's units
};

std::unique_ptr<Dataset> serve_arrays(ArrayContents contents);

}  // namespace sinew::data
