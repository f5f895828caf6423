#include "tune/trust_region.h"

#include <algorithm>
#include <cmath>

namespace sinew::tune {
namespace {

constexpr double kFirstSide = 0.8, kLargestSide = 0.8, kSmallestSide = 0.0078125;
constexpr int kSuccesses = 3;
// The least improvement, as a fraction of the distance from the best loss to the median.
constexpr double kWorthwhile = 1e-3;

// Returns the loss below which a trial counts as an improvement over the sorted `known` losses.
double threshold(const std::vector<double>& known) {
  const double best = known.front(), middle = known[known.size() / 2];
  return std::isfinite(middle) ? best - kWorthwhile * (middle - best) : best;
}

void resize(TrustRegion& region, double factor) {
  region.side *= factor;
  region.successes = region.failures = 0;
  if (region.side >= kSmallestSide) return;
  region.side = kFirstSide;
  ++region.restarts;
}

}  // namespace

TrustRegion trust_region_of(const Study& study) {
  const int most_failures = std::max(4, static_cast<int>(study.space().size()));
  TrustRegion region;
  std::vector<double> known;  // sorted
  std::pair<double, double> best = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (const int64_t id : study.observed()) {
    const Trial& trial = study.trial(id);
    const double loss = study.loss(trial);
    if (!std::isfinite(loss)) continue;
    const std::pair<double, double> rank = {Study::violation(trial), loss};
    const bool success =
        known.empty() || rank.first < best.first || (rank.first == best.first && loss < threshold(known));
    if (rank < best) {
      best = rank;
      region.centre = id;
    }
    known.insert(std::ranges::upper_bound(known, loss), loss);
    if (success) {
      region.failures = 0;
      if (++region.successes >= kSuccesses) resize(region, std::min(2.0, kLargestSide / region.side));
    } else if (trial.by == kTrustRegion) {
      region.successes = 0;
      if (++region.failures >= most_failures) resize(region, 0.5);
    }
  }
  return region;
}

}  // namespace sinew::tune
