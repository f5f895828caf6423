// The curve pruner: every trial runs a little, and then only those continue whose learning curve may still become the
// best.
//
// Freeze and thaw (Swersky, Snoek, Adams, "Freeze-thaw Bayesian optimization", 2014) with the extrapolation of
// tune/curve.h. Trials pause at regular steps. The pruner resumes the trial with the lowest optimistic forecast, until
// no forecast has a fair chance to beat the best whole trial. It corrects forecasts by hindsight: by the errors that
// the same forecast, made at the same step, would have had for the whole trials. So a schedule that lets every trial
// improve at its end does not mislead it.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "tune/curve.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

constexpr double kParts = 16;         // a trial may pause after each such fraction of its length ...
constexpr size_t kFewestReports = 3;  // ... but not before it has this many reports
constexpr double kOptimism = 0.5;     // deviations below the mean, for the optimistic forecast
constexpr double kSurely = 2;  // deviations above the mean: a loss that a running trial will almost surely undercut
constexpr double kFairChance = 0.1;   // probability of beating the best whole trial that justifies resuming a trial ...
constexpr double kGreatChance = 0.9;  // ... and the one that is required once the budget for resumed trials is spent
// A trial must beat the best by this fraction of its lead over the median of the first trials.
constexpr double kWorth = 0.05;
// Budget for resumed trials, as a fraction of all first steps: see promote().
constexpr double kEarlyShare = 0.1, kLateShare = 0.7;
constexpr double kLikely = 0.3;  // deviations between two means, for one to be probably lower
// Of the spread of the first trials: with a larger deviation, forecasts tell nothing.
constexpr double kMostDoubt = 0.4;
constexpr double kQuartilesOfNormal = 1.35;  // standard deviations between the quartiles of a normal distribution
constexpr double kMostDrop = 10;  // a curve is expected to fall at most this many times as far as it has fallen

struct Forecast {
  double mean, deviation;
  double optimistic() const { return mean - kOptimism * deviation; }
};

// Trials that are about equal do not take turns. Otherwise each of them would cost steps, and none would reach its end.
bool likely_below(const Forecast& one, const Forecast& other) {
  return other.mean - one.mean > kLikely * std::hypot(one.deviation, other.deviation);
}

class CurvePruner : public Pruner {
 public:
  explicit CurvePruner(const PrunerOptions& options) : options_(options), model_(options.max_resource) {}

  bool pauses() const override { return true; }

  Verdict judge(const Study& study, const Trial& trial) override {
    follow(study);
    const double step = trial.reports.back().step;
    if (!std::isfinite(study.loss(trial.reports.back())))
      return {PruneDecision::prune, "the value is not a finite number"};
    if (step >= options_.max_resource) return {PruneDecision::keep_running, "at its end"};
    const size_t reports = trial.reports.size();
    const double before = reports > 1 ? trial.reports[reports - 2].step : 0, first = first_wait(trial);
    if (step < first || (before >= first && part_of(before) == part_of(step))) {
      return {PruneDecision::keep_running, "too early to forecast its curve"};
    }
    if (before < first) {
      return paused(study, forecast(study, trial), "its first steps are done; the most promising trial continues");
    }
    const Forecast mine = forecast(study, trial);
    const auto other = most_promising(study);
    const double margin = kWorth * lead_of(mine.optimistic());
    if (other && step < options_.max_resource / 2 && other->second.optimistic() < mine.optimistic() - margin &&
        likely_below(other->second, mine)) {
      return paused(study, mine, "trial " + std::to_string(other->first) + " is more promising now");
    }
    if (chance_of(study, mine, trial.id) < kFairChance) return paused(study, mine, "it is unlikely to become the best");
    return {PruneDecision::keep_running, "its forecast is the best"};
  }

  // The steps of resumed trials, including those that running ones will still need, have a budget: a fraction of the
  // first steps of all trials. The fraction is small until all planned trials have started, because the best ones may
  // not be among them yet. After that it is larger, and at least enough to bring some trials to their end. Beyond the
  // budget, and only if there will be no new trials, the pruner resumes a trial that is almost certain to be the best.
  std::optional<Promotion> promote(const Study& study, bool no_new) override {
    follow(study);
    double first = 0, later = 0;
    for (const Trial& trial : study.trials()) {
      const double steps = trial.reports.empty() ? 0 : trial.reports.back().step;
      first += std::min(steps, first_wait(trial));
      const bool goes_on = trial.state == TrialState::running && trial.estimate;  // it has been paused before
      later += std::max(0.0, (goes_on ? options_.max_resource : steps) - first_wait(trial));
    }
    const bool all_begun = no_new || (study.options().budget > 0 && study.next_id() >= study.options().budget);
    const bool spent = later >= (all_begun ? std::max(first * kLateShare, least_for_ends(study)) : first * kEarlyShare);
    if (!no_new && (spent || study.next_id() < kFewestBegun)) return std::nullopt;
    const auto best = most_promising(study);
    if (!best) return std::nullopt;
    if (chance_of(study, best->second, best->first) < (spent ? kGreatChance : kFairChance)) return std::nullopt;
    return Promotion{best->first, "its forecast is the best of all paused trials"};
  }

 private:
  static constexpr int64_t kFewestBegun = 5, kTrialsAnEnd = 7, kMostEnds = 4;
  static constexpr size_t kFirstOnes = 16, kFewestCompared = 8;

  double wait() const { return std::max({std::ceil(options_.max_resource / kParts), options_.min_resource}); }
  double part_of(double step) const { return std::floor(step / wait() + 1e-9); }
  // The step at which a trial pauses for the first time.
  double first_wait(const Trial& trial) const {
    if (trial.reports.size() < kFewestReports) return std::numeric_limits<double>::infinity();
    return std::max(wait(), trial.reports[kFewestReports - 1].step);
  }

  // The steps that bring one of every kTrialsAnEnd trials to its end, at most kMostEnds of them.
  double least_for_ends(const Study& study) const {
    const auto ends = std::clamp<int64_t>(study.next_id() / kTrialsAnEnd, 1, kMostEnds);
    return static_cast<double>(ends) * std::max(0.0, options_.max_resource - wait());
  }

  std::optional<double> end_of(const Study& study, const Trial& trial) const {
    if (!trial.reports.empty() && trial.reports.back().step >= options_.max_resource)
      return study.loss(trial.reports.back());
    if (trial.state == TrialState::complete) return study.loss(trial);
    return std::nullopt;
  }

  // The forecast from the first `reports` reports, without hindsight.
  const Forecast& raw_forecast(const Study& study, const Trial& trial, size_t reports) {
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
    // An error or loss that was never below 0 is not expected to become negative.
    if (positive) floor = std::max(floor, 0.0);
    const Prediction prediction = model_.predict(steps, losses, floor);
    return found->second = {prediction.mean(), prediction.deviation()};
  }

  static size_t reports_until(const Trial& trial, double step) {
    return static_cast<size_t>(std::ranges::upper_bound(trial.reports, step, {}, &Report::step) -
                               trial.reports.begin());
  }

  // The forecast, corrected by the errors of such forecasts at this step of the whole trials.
  Forecast forecast(const Study& study, const Trial& trial) { return forecast(study, trial, trial.reports.size()); }
  Forecast forecast(const Study& study, const Trial& trial, size_t reports) {
    Forecast out = raw_forecast(study, trial, reports);
    double count = 1, shift = 0, square = 0;
    for (const int64_t id : whole_) {
      const Trial& other = study.trial(id);
      const size_t cut = reports_until(other, trial.reports[reports - 1].step);
      if (cut < 2) continue;
      const double wrong = *end_of(study, other) - raw_forecast(study, other, cut).mean;
      if (!std::isfinite(wrong)) continue;
      count += 1;
      shift += wrong;
      square += wrong * wrong;
    }
    out.mean += shift / count;
    out.deviation = std::sqrt(out.deviation * out.deviation + square / count - (shift / count) * (shift / count));
    return out;
  }

  // Updates what the whole trials tell: the best loss to beat, and the trials for hindsight.
  void follow(const Study& study) {
    whole_.clear();
    best_whole_ = std::numeric_limits<double>::infinity();
    for (const Trial& trial : study.trials()) {
      const auto end = end_of(study, trial);
      if (!end) continue;
      best_whole_ = std::min(best_whole_, *end);
      if (std::isfinite(*end) && trial.reports.size() >= 2) whole_.push_back(trial.id);
    }
    if (whole_.size() > kMostHindsight) whole_.erase(whole_.begin(), whole_.end() - kMostHindsight);
    first_ = first_forecasts(study);
  }

  std::optional<std::pair<int64_t, Forecast>> most_promising(const Study& study) {
    std::optional<std::pair<int64_t, Forecast>> best;
    for (const int64_t id : study.open()) {
      const Trial& trial = study.trial(id);
      if (trial.state != TrialState::paused || trial.reports.empty()) continue;
      const Forecast here = forecast(study, trial);
      if (!best || here.optimistic() < best->second.optimistic()) best = {id, here};
    }
    return best;
  }

  // The probability of ending below the target: the best whole trial, or the loss that a running trial will almost
  // surely undercut. 1 while there is no target.
  double chance_of(const Study& study, const Forecast& mine, int64_t me) {
    double target = best_whole_;
    for (const int64_t id : study.open()) {
      const Trial& trial = study.trial(id);
      if (id == me || trial.state != TrialState::running || !trial.estimate) continue;
      const Forecast other = forecast(study, trial);
      target = std::min(target, other.mean + kSurely * other.deviation);
    }
    if (!std::isfinite(target)) return 1;
    target -= kWorth * lead_of(target);
    if (!(mine.deviation > 0)) return mine.mean < target ? 1 : 0;
    return 0.5 * std::erfc((mine.mean - target) / (mine.deviation * std::sqrt(2.0)));
  }

  // Forecasts of the first trials at their first pause. No sampler has drawn these trials together yet.
  struct First {
    size_t count = 0;
    // Median and spread of the means, and the typical deviation of one forecast.
    double median = 0, spread = 0, doubt = 0;
  };
  First first_forecasts(const Study& study) {
    std::vector<double> means, doubts;
    for (const Trial& trial : study.trials()) {
      const double wait = first_wait(trial);
      const size_t cut = reports_until(trial, wait);
      if (!std::isfinite(wait) || cut == 0 || trial.reports[cut - 1].step < wait) continue;
      const Forecast there = forecast(study, trial, cut);
      if (!std::isfinite(there.mean)) continue;
      means.push_back(there.mean);
      doubts.push_back(there.deviation);
      if (means.size() == kFirstOnes) break;
    }
    if (means.empty()) return {};
    std::ranges::sort(means);
    std::ranges::sort(doubts);
    const size_t n = means.size();
    return {n, means[n / 2], (means[3 * n / 4] - means[n / 4]) / kQuartilesOfNormal, doubts[n / 2]};
  }

  // How far a loss is below the median of the first trials.
  double lead_of(double loss) const { return first_.count > 0 ? std::max(0.0, first_.median - loss) : 0; }

  // Whether forecasts at the first pause distinguish trials. If their noise is larger than the differences between
  // trials, a sampler that takes forecasts for results learns the noise and finds less than one that learns from whole
  // trials only.
  bool tells_apart() const { return first_.count >= kFewestCompared && first_.doubt < kMostDoubt * first_.spread; }

  Verdict paused(const Study& study, const Forecast& forecast, std::string why) const {
    const bool minimize = study.options().directions[0] == Direction::minimize;
    const double estimate = tells_apart() ? forecast.mean : std::nan("");
    return {PruneDecision::pause, std::move(why), minimize ? estimate : -estimate};
  }

  static constexpr ptrdiff_t kMostHindsight = 8;
  PrunerOptions options_;
  CurveModel model_;
  // By trial and number of reports; valid forever, because reports never change.
  std::map<std::pair<int64_t, size_t>, Forecast> known_;
  std::vector<int64_t> whole_;
  First first_;
  double best_whole_ = 0;
};

}  // namespace

std::unique_ptr<Pruner> make_curve(const PrunerOptions& options) {
  if (!(options.max_resource > 0)) {
    throw Error("TUNE_BAD_PRUNER", "pruner '" + options.name + "' needs the number of steps of a whole trial",
                R"(for example "max_resource":81)");
  }
  return std::make_unique<CurvePruner>(options);
}

// The curve pruner if the length of a trial is known, else the median rule.
std::unique_ptr<Pruner> make_auto_pruner(const PrunerOptions& options) {
  return options.max_resource > 0 ? make_curve(options) : make_median(options);
}

}  // namespace sinew::tune
