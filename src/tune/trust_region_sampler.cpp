// Local Bayesian optimisation: suggests a point within a box around the best point (trust_region.h), by a Gaussian
// process that knows only the trials nearest to it. Such a Gaussian process resolves detail that a model of the whole
// space mistakes for noise. If there are several objectives or constraints, the sampler gp suggests instead.
#include <algorithm>
#include <cmath>

#include "tune/gp_acquisition.h"
#include "tune/gp_warp.h"
#include "tune/makers.h"
#include "tune/trust_region.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int kEvaluations = 40;
constexpr double kOtherCategory = 0.3;  // the distance between different choices; the range of a number has length 1

double distance(const std::vector<Axis>& axes, const VectorXd& a, const VectorXd& b) {
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const bool number = !axes[static_cast<size_t>(i)].category && !std::isnan(a[i]) && !std::isnan(b[i]);
    const double apart = number ? a[i] - b[i] : a[i] == b[i] ? 0 : kOtherCategory;
    sum += apart * apart;
  }
  return sum;
}

// The ended trials nearest to a point.
struct Near {
  Points points;
  std::vector<double> losses;
};

Near nearest(const Study& study, const std::vector<Axis>& axes, const VectorXd& centre) {
  std::vector<std::pair<double, int64_t>> by_distance;
  for (const int64_t id : study.observed()) {
    const Trial& trial = study.trial(id);
    if (trial.state == TrialState::failed || !trial.values.empty()) {
      by_distance.emplace_back(distance(axes, centre, row_of(study.space(), trial.point)), id);
    }
  }
  std::ranges::sort(by_distance);
  const size_t most = std::clamp<size_t>(4 * axes.size(), 20, 60);
  by_distance.resize(std::min(by_distance.size(), most));
  Near near{Points(static_cast<Index>(by_distance.size()), centre.size()), {}};
  for (size_t i = 0; i < by_distance.size(); ++i) {
    const Trial& trial = study.trial(by_distance[i].second);
    near.points.row(static_cast<Index>(i)) = row_of(study.space(), trial.point).transpose();
    near.losses.push_back(study.loss(trial));
  }
  return near;
}

VectorXd best_fit(const std::vector<Axis>& axes, const Points& points, const VectorXd& values) {
  const std::vector<VectorXd> starts = fit_starts(axes);
  Fit best = fit_from(axes, points, values, starts[1], kEvaluations);
  const Fit additive = fit_from(axes, points, values, starts[0], kEvaluations);
  return additive.misfit < best.misfit ? additive.log_parameters : best.log_parameters;
}

class TrustRegionSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    const TrustRegion region = trust_region_of(study);
    const size_t least = std::min<size_t>(4 + study.space().size() / 2, 10);
    const bool constrained = region.centre >= 0 && !study.trial(region.centre).constraints.empty();
    if (region.centre < 0 || study.observed().size() < least || study.objectives() > 1 || constrained) {
      return global_->suggest(study);
    }
    const std::vector<Axis> axes = axes_of(study.space());
    const VectorXd centre = row_of(study.space(), study.trial(region.centre).point);
    const Near near = nearest(study, axes, centre);
    const VectorXd values = warp(near.losses, WarpKind::halfrank).values;
    const VectorXd log_parameters = best_fit(axes, near.points, values);
    GaussianProcess process(axes, log_parameters, near.points, values);
    double best = process.smoothed().minCoeff();
    for (const int64_t id : study.open()) {
      // Paused trials are left out, because there may be many.
      if (study.trial(id).state != TrialState::running) continue;
      const VectorXd x = row_of(study.space(), study.trial(id).point);
      const double expected = process.at(x).mean;
      process.append(x, expected);
      best = std::min(best, expected);
    }
    SearchOptions options;
    options.centres = {centre};
    set_box(axes, log_parameters, centre, region.side, options);
    RandomStream random = study.random(kTrustRegion);
    const auto found = maximise_acquisition(study, LogExpectedImprovement(process, best), random, options);
    if (!found) return global_->suggest(study);
    return {found->point,
            kTrustRegion,
            "improvement is expected near trial " + std::to_string(region.centre) +
                ", the best, by a model of its neighbourhood",
            {}};
  }

 private:
  // The box is longer along parameters with a long length scale.
  static void set_box(const std::vector<Axis>& axes, const VectorXd& log_parameters, const VectorXd& centre,
                      double side, SearchOptions& options) {
    const KernelLayout at{static_cast<Index>(axes.size())};
    const double middle = log_parameters.segment(at.length(0), at.axes).mean();
    options.low = VectorXd::Zero(at.axes);
    options.high = VectorXd::Ones(at.axes);
    for (Index i = 0; i < at.axes; ++i) {
      if (std::isnan(centre[i]) || axes[static_cast<size_t>(i)].category) continue;
      const double half = 0.5 * side * std::clamp(std::exp(log_parameters[at.length(i)] - middle), 0.3, 3.0);
      options.low[i] = std::max(0.0, centre[i] - half);
      options.high[i] = std::min(1.0, centre[i] + half);
    }
  }

  std::unique_ptr<Sampler> global_ = make_gp();
};

}  // namespace

std::unique_ptr<Sampler> make_trust_region() {
  return std::make_unique<TrustRegionSampler>();
}

}  // namespace sinew::tune
