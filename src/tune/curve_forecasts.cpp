#include "tune/curve_forecasts.h"

#include <algorithm>
#include <cmath>

namespace sinew::tune {
namespace {

// The optimistic forecast is this many standard deviations below the mean.
constexpr double kOptimism = 0.5;
// A trial pauses at most this many times, at equal distances.
constexpr double kPauses = 16;
constexpr size_t kFewestReports = 3;     // a trial does not pause before it has this many reports
constexpr ptrdiff_t kMostHindsight = 8;  // hindsight uses at most this many completed trials: the newest
// first_trials() uses at most kFirstOnes trials; tell_apart() needs at least kFewestCompared of them.
constexpr size_t kFirstOnes = 16, kFewestCompared = 8;
// The largest ratio of the typical forecast error to the spread of trials for which tell_apart() returns true.
constexpr double kMostDoubt = 0.4;
constexpr double kQuartilesOfNormal = 1.35;  // standard deviations between the quartiles of a normal distribution
// The lowest final loss that a forecast considers: the best loss minus this many times the range so far.
constexpr double kMostDrop = 10;

size_t reports_until(const Trial& trial, double step) {
  return static_cast<size_t>(std::ranges::upper_bound(trial.reports, step, {}, &Report::step) - trial.reports.begin());
}

}  // namespace

double Forecast::optimistic() const {
  return mean - kOptimism * deviation;
}

double CurveForecasts::wait() const {
  return std::max({std::ceil(options_.max_resource / kPauses), options_.min_resource});
}

double CurveForecasts::first_wait(const Trial& trial) const {
  if (trial.reports.size() < kFewestReports) return std::numeric_limits<double>::infinity();
  return std::max(wait(), trial.reports[kFewestReports - 1].step);
}

void CurveForecasts::follow(const Study& study) {
  whole_.clear();
  best_whole_ = std::numeric_limits<double>::infinity();
  for (const Trial& trial : study.trials()) {
    const auto end = end_of(study, trial);
    if (!end) continue;
    best_whole_ = std::min(best_whole_, *end);
    if (std::isfinite(*end) && trial.reports.size() >= 2) whole_.push_back(trial.id);
  }
  if (whole_.size() > kMostHindsight) whole_.erase(whole_.begin(), whole_.end() - kMostHindsight);
  first_ = first_trials(study);
}

double CurveForecasts::lead_of(double loss) const {
  return first_.count > 0 ? std::max(0.0, first_.median - loss) : 0;
}

bool CurveForecasts::tell_apart() const {
  return first_.count >= kFewestCompared && first_.deviation < kMostDoubt * first_.spread;
}

// Returns the final loss of a trial, or nullopt if the trial has not run to its end.
std::optional<double> CurveForecasts::end_of(const Study& study, const Trial& trial) const {
  if (!trial.reports.empty() && trial.reports.back().step >= options_.max_resource)
    return study.loss(trial.reports.back());
  if (trial.state == TrialState::complete) return study.loss(trial);
  return std::nullopt;
}

// Forecasts from the first `reports` reports of a trial, before the correction by hindsight.
const Forecast& CurveForecasts::without_hindsight(const Study& study, const Trial& trial, size_t reports) {
  const auto [found, fresh] = known_.try_emplace({trial.id, reports});
  if (!fresh) return found->second;
  std::vector<double> steps, losses;
  bool positive = study.options().directions[0] == Direction::minimize;
  for (size_t i = 0; i < reports; ++i) {
    if (!std::isfinite(study.loss(trial.reports[i]))) continue;
    steps.push_back(trial.reports[i].step);
    losses.push_back(study.loss(trial.reports[i]));
    positive &= losses.back() >= 0;
  }
  if (steps.size() < 2)
    return found->second = {losses.empty() ? 0 : losses[0], std::abs(losses.empty() ? 0 : losses[0])};
  const auto [low, high] = std::ranges::minmax(losses);
  double floor = low - kMostDrop * (high - low);
  // A loss that was never below 0 is not expected to become negative.
  if (positive) floor = std::max(floor, 0.0);
  const forecast::Prediction prediction = model_.predict(steps, losses, floor);
  return found->second = {prediction.mean(), prediction.deviation()};
}

Forecast CurveForecasts::forecast(const Study& study, const Trial& trial, size_t reports) {
  Forecast out = without_hindsight(study, trial, reports);
  double count = 1, shift = 0, square = 0;
  for (const int64_t id : whole_) {
    const Trial& other = study.trial(id);
    const size_t cut = reports_until(other, trial.reports[reports - 1].step);
    if (cut < 2) continue;
    const double wrong = *end_of(study, other) - without_hindsight(study, other, cut).mean;
    if (!std::isfinite(wrong)) continue;
    count += 1;
    shift += wrong;
    square += wrong * wrong;
  }
  out.mean += shift / count;
  out.deviation = std::sqrt(out.deviation * out.deviation + square / count - (shift / count) * (shift / count));
  return out;
}

CurveForecasts::FirstTrials CurveForecasts::first_trials(const Study& study) {
  std::vector<double> means, deviations;
  for (const Trial& trial : study.trials()) {
    const double wait = first_wait(trial);
    const size_t cut = reports_until(trial, wait);
    if (!std::isfinite(wait) || cut == 0 || trial.reports[cut - 1].step < wait) continue;
    const Forecast there = forecast(study, trial, cut);
    if (!std::isfinite(there.mean)) continue;
    means.push_back(there.mean);
    deviations.push_back(there.deviation);
    if (means.size() == kFirstOnes) break;
  }
  if (means.empty()) return {};
  std::ranges::sort(means);
  std::ranges::sort(deviations);
  const size_t n = means.size();
  return {n, means[n / 2], (means[3 * n / 4] - means[n / 4]) / kQuartilesOfNormal, deviations[n / 2]};
}

}  // namespace sinew::tune
