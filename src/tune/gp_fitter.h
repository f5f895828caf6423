// When a process is fitted anew, from which beginnings, and with which warp of its values.
//
// A fit from all beginnings is dear, so there are few: each time the study has grown by a part. In between the last
// numbers are brought up to date. They are found again in the sampler_state of the suggestion that was made with them,
// so what is fitted is a function of the record. For tune/ only.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tune/gp.h"
#include "tune/gp_warp.h"

namespace sinew::tune {

// Of one process: how many trials there were when it was fitted from all starts and when it was last fitted at all, its
// warp, its fitted numbers.
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
  // `trials`: how many are known; `memory`: of the last fit, or null.
  Fitter(const std::vector<Axis>& axes, const Points& points, double trials, const FitRecord* memory);

  // The process of fixed values.
  FitRecord fit(const Eigen::VectorXd& values) const;
  // The process of losses, with the warp that explains them best.
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
