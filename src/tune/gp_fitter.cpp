#include "tune/gp_fitter.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr size_t kMostFitted = 150;   // a fit uses at most this many points; of more points, it uses every n-th
constexpr double kGrowth = 1.2;       // a full fit is repeated when the number of trials has grown by this factor
constexpr double kWarmGrowth = 1.04;  // the last fit is improved when the number of trials has grown by this factor
constexpr int kWarmEvaluations = 12, kStartEvaluations = 50, kWarpEvaluations = 15;

// Every n-th row, with the smallest n that leaves at most kMostFitted rows. The newest row is always kept.
struct Thinned {
  Points points;
  VectorXd values;
};
Thinned thinned(const Points& points, const VectorXd& values) {
  const Index step = (values.size() + static_cast<Index>(kMostFitted) - 1) / static_cast<Index>(kMostFitted);
  if (step <= 1) return {points, values};
  const Index n = (values.size() + step - 1) / step;
  Thinned thin{Points(n, points.cols()), VectorXd(n)};
  for (Index i = 0; i < n; ++i) {
    thin.points.row(i) = points.row(values.size() - 1 - i * step);
    thin.values[i] = values[values.size() - 1 - i * step];
  }
  return thin;
}

}  // namespace

FitRecord FitRecord::read(std::span<const double> sampler_state, Index numbers) {
  return {sampler_state[0], sampler_state[1], static_cast<WarpKind>(static_cast<int>(sampler_state[2])),
          Eigen::Map<const VectorXd>(sampler_state.data() + 3, numbers)};
}

void FitRecord::write(std::vector<double>& sampler_state) const {
  sampler_state.push_back(full_fit_at);
  sampler_state.push_back(fitted_at);
  sampler_state.push_back(static_cast<double>(warp));
  sampler_state.insert(sampler_state.end(), log_parameters.begin(), log_parameters.end());
}

Fitter::Fitter(const std::vector<Axis>& axes, const Points& points, double trials, const FitRecord* memory)
    : axes_(axes), points_(points), trials_(trials), memory_(memory) {
  begin_anew_ = memory == nullptr || trials >= kGrowth * memory->full_fit_at;
}

FitRecord Fitter::fit(const VectorXd& values) const {
  return up_to_date() ? *memory_ : record_of(WarpKind::linear, best_fit(values).log_parameters);
}

FitRecord Fitter::fit(std::span<const double> losses, bool may_bend) const {
  if (up_to_date()) return *memory_;
  if (!begin_anew_) return record_of(memory_->warp, best_fit(warp(losses, memory_->warp).values).log_parameters);
  const Warped first = warp(losses, WarpKind::halfrank);
  Fit best = best_fit(first.values);
  FitRecord chosen = record_of(WarpKind::halfrank, best.log_parameters);
  double least = best.misfit - first.log_slopes;
  for (const WarpKind kind : {WarpKind::bent, WarpKind::logarithm}) {
    if (!may_bend) break;
    const Warped other = warp(losses, kind);
    const Thinned thin = thinned(points_, other.values);
    const Fit fit = fit_from(axes_, thin.points, thin.values, best.log_parameters, kWarpEvaluations);
    if (fit.misfit - other.log_slopes >= least) continue;
    least = fit.misfit - other.log_slopes;
    chosen = record_of(kind, fit.log_parameters);
  }
  return chosen;
}

bool Fitter::up_to_date() const {
  return !begin_anew_ && trials_ < kWarmGrowth * memory_->fitted_at;
}

FitRecord Fitter::record_of(WarpKind warp, const VectorXd& log_parameters) const {
  return {begin_anew_ ? trials_ : memory_->full_fit_at, trials_, warp, log_parameters};
}

Fit Fitter::best_fit(const VectorXd& values) const {
  const Thinned thin = thinned(points_, values);
  std::optional<Fit> best;
  const auto consider = [&](const VectorXd& start, int evaluations) {
    Fit fit = fit_from(axes_, thin.points, thin.values, start, evaluations);
    if (!best || fit.misfit < best->misfit) best = std::move(fit);
  };
  if (memory_ != nullptr) consider(memory_->log_parameters, kWarmEvaluations);
  if (begin_anew_) {
    for (const VectorXd& start : fit_starts(axes_)) consider(start, kStartEvaluations);
  }
  return *best;
}

}  // namespace sinew::tune
