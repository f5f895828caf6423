// The density of a set of trials over the active part of a space: a mixture of one product kernel a trial and, with
// some weight, the even density.
//
// For the TPE sampler. A kernel is a truncated normal along a number or an ordinal, and a bump on one choice along a
// category. The declared tree is used as it is: a parameter a trial does not have counts as even in its kernel, and
// one a candidate does not have is left out of the product; so trials of other branches still say what they know about
// the common parameters. Follows Watanabe, "Tree-structured Parzen estimator" (arXiv 2304.11127), with that paper's
// better settings: widths by the gap to the neighbours, at least 3 % of the range.
#pragma once

#include <span>
#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

// The told part of a study in the unit cube, a column a parameter; inactive is NaN.
using Columns = std::vector<std::vector<float>>;

class TpeDensity {
 public:
  // `rows` index the columns; `weights` one a row; `prior_weight` that of the even density. All weights are relative.
  TpeDensity(const Space& space, const Columns& columns, std::span<const int32_t> rows, std::span<const double> weights,
             double prior_weight);

  // A point drawn from it.
  Point draw(const Space& space, RandomStream& random) const;
  // The logarithm of the density at a point of the cube (of its active parameters).
  double log_density(const Space& space, std::span<const float> unit) const;

 private:
  // One parameter's kernels: the term of row i at u is height[i] - (scale[i] * (u - center[i]))^2 / 2 along numbers,
  // and match[i] or other[i] along choices; rows without the parameter have all zero.
  struct Column {
    std::vector<float> center, scale, height;
  };
  void fit_numbers(const Space& space, size_t parameter, const std::vector<float>& values,
                   std::span<const int32_t> rows);
  void fit_choices(const Space& space, size_t parameter, const std::vector<float>& values,
                   std::span<const int32_t> rows);
  std::vector<Column> columns_;
  std::vector<float> log_weights_;  // a row; the last is the even density's
  std::vector<double> cumulative_;  // of the weights
};

}  // namespace sinew::tune
