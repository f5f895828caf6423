// The median rule: prunes a trial whose best value so far is worse than the median of the other trials at the same
// step. Golovin, Solnik, Moitra, Kochanski, Karro, Sculley, "Google Vizier" (KDD 2017), section 3.2.1.
#include <algorithm>
#include <cmath>

#include "tune/makers.h"

namespace sinew::tune {
namespace {

constexpr size_t kFewestOthers = 5;  // the rule needs this many other trials that reached the step

class MedianPruner : public Pruner {
 public:
  explicit MedianPruner(const PrunerOptions& options) : options_(options) {}

  Verdict judge(const Study& study, const Trial& trial) override {
    const double step = trial.reports.back().step;
    if (!std::isfinite(study.loss(trial.reports.back())))
      return {PruneDecision::prune, "the value is not a finite number"};
    if (step < options_.min_resource) return {PruneDecision::keep_running, "too early to say"};
    std::vector<double> others;
    for (const Trial& other : study.trials()) {
      if (other.id == trial.id || other.reports.empty() || other.reports.back().step < step) continue;
      const auto there = std::ranges::lower_bound(other.reports, step, {}, &Report::step);
      others.push_back(study.loss(*there));
    }
    if (others.size() < kFewestOthers) return {PruneDecision::keep_running, "too few trials have reached this step"};
    std::ranges::nth_element(others, others.begin() + static_cast<ptrdiff_t>(others.size() / 2));
    const double median = others[others.size() / 2];
    double best = std::numeric_limits<double>::infinity();
    for (const Report& report : trial.reports) best = std::min(best, study.loss(report));
    if (best > median)
      return {PruneDecision::prune,
              "worse than the median of " + std::to_string(others.size()) + " trials at this step"};
    return {PruneDecision::keep_running, "not worse than the median at this step"};
  }

 private:
  PrunerOptions options_;
};

}  // namespace

std::unique_ptr<Pruner> make_median(const PrunerOptions& options) {
  return std::make_unique<MedianPruner>(options);
}

}  // namespace sinew::tune
