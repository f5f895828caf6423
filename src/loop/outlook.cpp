#include "loop/outlook.h"

#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "base/printable.h"

namespace sinew::loop {
namespace {

// Returns how many quarters of the training are done.
int64_t quarters(int64_t step, int64_t last_step) {
  return last_step > 0 ? 4 * step / last_step : 0;
}

}  // namespace

Outlook look_ahead(Outlook before, const forecast::Monitored& monitored, const forecast::Evaluation& evaluation,
                   const Ahead& ahead) {
  if (before.metric != monitored.metric) before = {.metric = monitored.metric, .short_budget = before.short_budget};
  Outlook after = std::move(before);
  after.evaluations.add(evaluation, monitored.lower);
  after.newest.reset();
  if (ahead.last_step <= evaluation.step) return after;
  after.newest = forecast::best_at_end(after.evaluations, monitored,
                                       {.last_step = static_cast<double>(ahead.last_step),
                                        .evaluations = ahead.evaluations,
                                        .lowest_rate = ahead.lowest_rate,
                                        .mean_rate = ahead.mean_rate,
                                        .highest_rate = ahead.highest_rate});
  const int64_t done = quarters(evaluation.step, ahead.last_step);
  const bool due = done > 0 && (after.made.empty() || quarters(after.made.back().step, ahead.last_step) < done);
  if (due && after.newest)
    after.made.push_back({.step = evaluation.step,
                          .last_step = ahead.last_step,
                          .best = *after.evaluations.best,
                          .low = after.newest->low,
                          .high = after.newest->high,
                          .none_better = after.newest->none_better,
                          .seconds_low = ahead.seconds_low,
                          .seconds_high = ahead.seconds_high});
  return after;
}

std::optional<forecast::BestValue> forecast_to_show(const Outlook& outlook) {
  if (!outlook.newest || outlook.evaluations.points.empty()) return std::nullopt;
  const double reached = std::abs(*outlook.evaluations.best - outlook.evaluations.points.front().value);
  const bool tells = outlook.newest->high - outlook.newest->low <= reached;
  return tells ? outlook.newest : std::nullopt;
}

std::string none_better_text(const Outlook& outlook, const std::string& directory, bool keeps) {
  if (outlook.told || !outlook.newest || outlook.newest->none_better < forecast::kLikely) return "";
  const forecast::Evaluations& evaluations = outlook.evaluations;
  const std::string patience = std::to_string(evaluations.patience());
  return "90 % likely that no better " + outlook.metric + " comes than " + rounded_text(*evaluations.best, 4) +
         " at step " + std::to_string(evaluations.best_step) + ". To end the run now: sinew stop " +
         shell_quoted(directory) + (keeps ? "; checkpoints/best has the best state" : "") +
         ". To end a run by itself then, with the best model: early_stopping.monitor=" + outlook.metric +
         " early_stopping.patience=" + patience;
}

std::optional<rundir::MetricForecasts> forecasts_of(const Outlook& outlook) {
  if (outlook.made.empty()) return std::nullopt;
  return rundir::MetricForecasts{.metric = outlook.metric,
                                 .made = outlook.made,
                                 .best = outlook.evaluations.best,
                                 .best_step = outlook.evaluations.best_step};
}

}  // namespace sinew::loop
