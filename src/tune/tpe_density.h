// Fits a density to a set of trials over a search space: a mixture of the uniform density and of one product kernel for
// each trial.
//
// The samplers TPE and BOHB use this class. A kernel is a truncated normal distribution along a number or an ordinal,
// and a bump on one choice along a category. If a trial does not have a conditional parameter, its kernel is uniform
// along that parameter. If a candidate does not have the parameter, the product omits it. Trials of other branches
// therefore still contribute what they know about shared parameters. The settings follow Watanabe, "Tree-structured
// Parzen estimator" (arXiv 2304.11127): the width of a kernel is the larger gap to a neighbour, at least 3 % of the
// range.
#pragma once

#include <span>
#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

// The points of a study in the unit cube, one column for each parameter; NaN where a parameter is inactive.
using Columns = std::vector<std::vector<float>>;

class TpeDensity {
 public:
  // `rows` are indices into the columns, `weights` their relative weights, and `prior_weight` is that of the uniform
  // density.
  TpeDensity(const Space& space, const Columns& columns, std::span<const int32_t> rows, std::span<const double> weights,
             double prior_weight);

  // Draws a point from the density.
  Point draw(const Space& space, RandomStream& random) const;
  // The log density at a point of the cube, over its active parameters.
  double log_density(const Space& space, std::span<const float> unit) const;

 private:
  // The logarithms of the kernels of all rows along one parameter. For a number, the logarithm of row i at u is
  // height[i] - (scale[i] * (u - center[i]))^2 / 2. For a category it is height[i] if u equals center[i], else
  // scale[i]. A row without the parameter has scale and height 0, so its logarithm is 0.
  struct Column {
    std::vector<float> center, scale, height;
  };
  void fit_numbers(const Space& space, size_t parameter, const std::vector<float>& values,
                   std::span<const int32_t> rows);
  void fit_choices(const Space& space, size_t parameter, const std::vector<float>& values,
                   std::span<const int32_t> rows);
  std::vector<Column> columns_;
  std::vector<float> log_weights_;  // one for each row; the last is that of the uniform density
  std::vector<double> cumulative_;  // sums of the weights
};

}  // namespace sinew::tune
