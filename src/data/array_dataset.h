// Private to data/: an array dataset that is complete and ready to load. array_builder.cpp fills ArrayContents; the
// dataset only reads it.
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
  std::shared_ptr<const ArraySplit> arrays;  // splits that are cut from one file share its arrays
  std::vector<int64_t> samples;              // rows of the file; empty if `whole` is true
  bool whole = false;                        // true: the samples are all rows of the file, in order
  Labels labels;                             // one target for each row of the file
  int64_t size() const { return whole ? arrays->inputs.rows() : static_cast<int64_t>(samples.size()); }
  int64_t row(int64_t sample) const { return whole ? sample : samples[static_cast<size_t>(sample)]; }
};

struct ArrayContents {
  DataInfo info;
  spec::AugmentOptions augment;
  ArraySamples splits[3];
  bool per_element = false;          // true: the inputs are columns of a table, and each column has its own mean
  int64_t area = 1;                  // elements of one channel
  double unit = 1;                   // the value in the file that means 1.0: 255 if pixels are bytes
  std::vector<double> mean, factor;  // for the normalisation, in the units of the file's values
};

std::unique_ptr<Dataset> make_dataset(ArrayContents contents);

}  // namespace sinew::data
