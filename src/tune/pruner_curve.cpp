// The curve pruner: every trial runs a little. Then only those trials continue whose learning curve may still end at
// the best value.
//
// The algorithm is freeze-thaw (Swersky, Snoek, Adams, "Freeze-thaw Bayesian optimization", 2014) with the
// extrapolation of forecast/curve.h. Trials pause at regular steps. The pruner resumes the trial with the lowest
// optimistic forecast, until no forecast has a fair chance to beat the best completed trial. Forecasts are corrected by
// hindsight (curve_forecasts.h).
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tune/curve_forecasts.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

constexpr double kSurely = 2;  // a running trial almost surely ends below its mean plus this many standard deviations
// A trial resumes if it beats the best completed trial with at least this probability.
constexpr double kFairChance = 0.1;
// Once the budget for resumed trials is spent, a trial resumes only if it beats that trial with at least this
// probability.
constexpr double kGreatChance = 0.9;
// A loss counts as lower than a target only if it is lower by a margin. The margin is this fraction of the distance
// from the target up to the median forecast of the first trials (CurveForecasts::lead_of).
constexpr double kWorth = 0.05;
// The budget of steps for resumed trials, as a fraction of the first steps of all trials. kEarlyShare applies until all
// planned trials have started, kLateShare afterwards. See promote().
constexpr double kEarlyShare = 0.1, kLateShare = 0.7;
constexpr double kLikely = 0.3;  // how many standard deviations one mean must be below the other

// Returns whether `one` is clearly lower than `other`. Trials that are about equal must not take turns: each turn would
// cost steps, and no trial would reach its end.
bool likely_below(const Forecast& one, const Forecast& other) {
  return other.mean - one.mean > kLikely * std::hypot(one.deviation, other.deviation);
}

class CurvePruner : public Pruner {
 public:
  explicit CurvePruner(const PrunerOptions& options) : options_(options), forecasts_(options) {}

  bool pauses() const override { return true; }

  Verdict judge(const Study& study, const Trial& trial) override {
    forecasts_.follow(study);
    const double step = trial.reports.back().step;
    if (!std::isfinite(study.loss(trial.reports.back())))
      return {PruneDecision::prune, "the value is not a finite number"};
    if (step >= options_.max_resource) return {PruneDecision::keep_running, "at its end"};
    const size_t reports = trial.reports.size();
    const double before = reports > 1 ? trial.reports[reports - 2].step : 0, first = forecasts_.first_wait(trial);
    if (step < first || (before >= first && pauses_until(before) == pauses_until(step))) {
      return {PruneDecision::keep_running, "too early to forecast its curve"};
    }
    if (before < first) {
      return paused(study, forecasts_.forecast(study, trial),
                    "its first steps are done; the most promising trial continues");
    }
    const Forecast mine = forecasts_.forecast(study, trial);
    const auto other = most_promising(study);
    const double margin = kWorth * forecasts_.lead_of(mine.optimistic());
    if (other && step < options_.max_resource / 2 && other->second.optimistic() < mine.optimistic() - margin &&
        likely_below(other->second, mine)) {
      return paused(study, mine, "trial " + std::to_string(other->first) + " is more promising now");
    }
    if (chance_of(study, mine, trial.id) < kFairChance) return paused(study, mine, "it is unlikely to become the best");
    return {PruneDecision::keep_running, "its forecast is the best"};
  }

  // Resumed trials have a budget of steps: a fraction of the first steps of all trials, which are the steps up to a
  // trial's first pause. Steps that resumed trials still need to their end are counted as used. The fraction is small
  // until all planned trials have started, because perhaps the best trials have not started yet. After that it is
  // larger, and at least enough to bring some trials to their end. Beyond the budget, and only if no new trials will
  // start, the pruner resumes a trial that is almost certain to be the best.
  std::optional<Promotion> promote(const Study& study, bool no_new) override {
    forecasts_.follow(study);
    double first = 0, later = 0;
    for (const Trial& trial : study.trials()) {
      const double steps = trial.reports.empty() ? 0 : trial.reports.back().step;
      first += std::min(steps, forecasts_.first_wait(trial));
      const bool resumed = trial.state == TrialState::running && trial.estimate;  // the trial was paused before
      later += std::max(0.0, (resumed ? options_.max_resource : steps) - forecasts_.first_wait(trial));
    }
    const bool all_started = no_new || (study.options().budget > 0 && study.next_id() >= study.options().budget);
    const bool spent =
        later >= (all_started ? std::max(first * kLateShare, least_for_ends(study)) : first * kEarlyShare);
    if (!no_new && (spent || study.next_id() < kFewestStarted)) return std::nullopt;
    const auto best = most_promising(study);
    if (!best) return std::nullopt;
    if (chance_of(study, best->second, best->first) < (spent ? kGreatChance : kFairChance)) return std::nullopt;
    return Promotion{best->first, "its forecast is the best of all paused trials"};
  }

 private:
  static constexpr int64_t kFewestStarted = 5, kTrialsAnEnd = 7, kMostEnds = 4;

  double pauses_until(double step) const { return std::floor(step / forecasts_.wait() + 1e-9); }
  // Returns the steps that it takes to bring one in kTrialsAnEnd started trials from its first pause to its end. Counts
  // at least one trial and at most kMostEnds.
  double least_for_ends(const Study& study) const {
    const auto ends = std::clamp<int64_t>(study.next_id() / kTrialsAnEnd, 1, kMostEnds);
    return static_cast<double>(ends) * std::max(0.0, options_.max_resource - forecasts_.wait());
  }

  std::optional<std::pair<int64_t, Forecast>> most_promising(const Study& study) {
    std::optional<std::pair<int64_t, Forecast>> best;
    for (const int64_t id : study.open()) {
      const Trial& trial = study.trial(id);
      if (trial.state != TrialState::paused || trial.reports.empty()) continue;
      const Forecast here = forecasts_.forecast(study, trial);
      if (!best || here.optimistic() < best->second.optimistic()) best = {id, here};
    }
    return best;
  }

  // Returns the probability that a trial ends below the target, or 1 while there is no target. The target is the loss
  // of the best completed trial, or the lower loss that a running trial will almost surely reach, minus a margin.
  double chance_of(const Study& study, const Forecast& mine, int64_t me) {
    double target = forecasts_.best_whole();
    for (const int64_t id : study.open()) {
      const Trial& trial = study.trial(id);
      if (id == me || trial.state != TrialState::running || !trial.estimate) continue;
      const Forecast other = forecasts_.forecast(study, trial);
      target = std::min(target, other.mean + kSurely * other.deviation);
    }
    if (!std::isfinite(target)) return 1;
    target -= kWorth * forecasts_.lead_of(target);
    if (!(mine.deviation > 0)) return mine.mean < target ? 1 : 0;
    return 0.5 * std::erfc((mine.mean - target) / (mine.deviation * std::sqrt(2.0)));
  }

  Verdict paused(const Study& study, const Forecast& forecast, std::string why) const {
    const bool minimize = study.options().directions[0] == Direction::minimize;
    const double estimate = forecasts_.tell_apart() ? forecast.mean : std::nan("");
    return {PruneDecision::pause, std::move(why), minimize ? estimate : -estimate};
  }

  PrunerOptions options_;
  CurveForecasts forecasts_;
};

}  // namespace

std::unique_ptr<Pruner> make_curve(const PrunerOptions& options) {
  if (!(options.max_resource > 0)) {
    throw Error("TUNE_BAD_PRUNER", "pruner '" + options.name + "' needs the number of steps of a whole trial",
                R"(for example "max_resource":81)");
  }
  return std::make_unique<CurvePruner>(options);
}

// Makes the curve pruner if the length of a trial is known, else the median pruner.
std::unique_ptr<Pruner> make_auto_pruner(const PrunerOptions& options) {
  return options.max_resource > 0 ? make_curve(options) : make_median(options);
}

}  // namespace sinew::tune
