// Implements the rules of early stopping and of objectives.
#include <cmath>

#include "base/number_text.h"
#include "forecast/forecast.h"
#include "report/report.h"

namespace sinew::report {

bool improves(double value, const std::optional<double>& best, bool lower, double min_delta) {
  if (std::isnan(value)) return false;
  return !best || (lower ? value < *best - min_delta : value > *best + min_delta);
}

bool take(BestSoFar& so_far, Step step, double value, bool lower, double min_delta) {
  if (!improves(value, so_far.best, lower, min_delta)) {
    ++so_far.without_improvement;
    return false;
  }
  so_far = {value, step, 0};
  return true;
}

std::string not_improved(const std::string& metric, const BestSoFar& so_far, const std::string& what) {
  return metric + " has not improved in " + std::to_string(so_far.without_improvement) + " " + what +
         (so_far.best ? "; its best was " + rounded_text(*so_far.best) + " at step " + std::to_string(so_far.step.value)
                      : "; it has never been a number");
}

forecast::Monitored monitored_metric(const spec::Job& job) {
  const spec::EarlyStoppingOptions& early = job.early_stopping;
  if (!early.monitor.empty()) return {early.monitor, lower_is_better(early.monitor, early.mode), early.min_delta};
  if (job.objective) return {job.objective->metric, !job.objective->at_least, 0};
  return {job.checkpoint.monitor, lower_is_better(job.checkpoint.monitor, job.checkpoint.mode), 0};
}

bool meets(const spec::Objective& objective, double value) {
  return objective.at_least ? value >= objective.value : value <= objective.value;
}

std::string objective_met(const spec::Objective& objective, double value) {
  return "objective met: " + objective.metric + " is " + rounded_text(value) +
         (objective.at_least ? ", at least " : ", at most ") + rounded_text(objective.value);
}

}  // namespace sinew::report
