// Decides when a Gaussian process is fitted again, from which starts, and with which warp of its values.
//
// A fit from all starts is expensive, so it happens only each time the study has grown by a fixed factor. Between these
// full fits, the fitter improves the last kernel parameters by a few steps. It reads those parameters from the
// `sampler_state` of the suggestion that was made with them. Every fit therefore depends only on the trial history.
// Private to tune/.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tune/gp.h"
#include "tune/gp_warp.h"

namespace sinew::tune {

// The fit of one Gaussian process: the number of trials at the last full fit and at the last fit of any kind, the warp
// of the values, and the logarithms of the kernel parameters.
struct FitRecord {
  double full_fit_at = 0, fitted_at = 0;
  WarpKind warp = WarpKind::halfrank;
  Eigen::VectorXd log_parameters;

  static size_t size(Eigen::Index numbers) { return static_cast<size_t>(numbers) + 3; }
  static FitRecord read(std::span<const double> sampler_state, Eigen::Index numbers);
  void write(std::vector<double>& sampler_state) const;
};

class Fitter {
 public:
  // `trials` is the number of known trials. `memory` is the last fit, or null.
  Fitter(const std::vector<Axis>& axes, const Points& points, double trials, const FitRecord* memory);

  // Fits kernel parameters to these values, without a warp.
  FitRecord fit(const Eigen::VectorXd& values) const;
  // Fits kernel parameters to losses, and chooses the warp that explains the losses best. The logarithmic warps are
  // candidates only if `may_bend` is set.
  FitRecord fit(std::span<const double> losses, bool may_bend) const;

 private:
  bool up_to_date() const;
  FitRecord record_of(WarpKind warp, const Eigen::VectorXd& log_parameters) const;
  Fit best_fit(const Eigen::VectorXd& values) const;

  const std::vector<Axis>& axes_;
  const Points& points_;
  double trials_;
  const FitRecord* memory_;
  bool begin_anew_ = true;
};

}  // namespace sinew::tune
