#include "loop/judge.h"

#include <algorithm>

#include "report/report.h"

namespace sinew::loop {
namespace {

// How many earlier best steps to remember, besides those that are kept. An older best step replaces the newest one if
// the newest could not be saved.
constexpr size_t kSpareBest = 16;

std::optional<double> value_of(const report::Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

void remember(EvaluationState& state, Step step, int64_t keep) {
  state.best_step = step;
  state.best_steps.push_back(step);
  const size_t most = static_cast<size_t>(std::max<int64_t>(keep, 0)) + kSpareBest;
  if (state.best_steps.size() > most) {
    const auto too_many = static_cast<std::ptrdiff_t>(state.best_steps.size() - most);
    state.best_steps.erase(state.best_steps.begin(), state.best_steps.begin() + too_many);
  }
}

std::string why_missing(const std::string& metric) {
  if (metric.ends_with("/auc"))
    return "it needs samples of both classes, and the evaluated data probably has only one of them";
  if (metric.ends_with("/r2"))
    return "it needs targets that differ, and those of the evaluated data are probably all the same";
  return "the evaluated samples gave no value for it";
}

}  // namespace

std::map<std::string, std::string> missing_metrics(const report::Metrics& metrics, const spec::Job& job) {
  std::map<std::string, std::string> undecided;
  const auto need = [&](const std::string& metric, const std::string& what) {
    if (metric.empty() || metrics.contains(metric)) return;
    std::string& text = undecided[metric];
    text += (text.empty() ? "" : ", ") + what;
  };
  if (job.checkpoint.keep_best > 0) need(job.checkpoint.monitor, "which checkpoint is the best (checkpoint.monitor)");
  need(job.early_stopping.monitor, "whether to stop early (early_stopping.monitor)");
  if (job.objective) need(job.objective->metric, "whether the objective is met (objective)");
  for (auto& [metric, text] : undecided)
    text = "an evaluation has no " + metric + ", so it cannot decide " + text + "; " + why_missing(metric);
  return undecided;
}

EvaluationState decide_end(EvaluationState state, const spec::Job& job) {
  const spec::EarlyStoppingOptions& early = job.early_stopping;
  state.stop.clear();
  if (state.last.contains(early.monitor) && state.patience.without_improvement >= early.patience)
    state.stop = report::not_improved(early.monitor, state.patience, "evaluations");
  const auto value = job.objective ? value_of(state.last, job.objective->metric) : std::nullopt;
  state.objective_met = value && report::meets(*job.objective, *value);
  if (state.objective_met) state.stop = report::objective_met(*job.objective, *value);
  return state;
}

Judgement judge(const EvaluationState& before, Step step, const report::Metrics& metrics, const spec::Job& job) {
  Judgement verdict{before, false};
  EvaluationState& state = verdict.state;
  state.last = metrics;
  const auto& early = job.early_stopping;
  const bool lower = report::lower_is_better(job.checkpoint.monitor, job.checkpoint.mode);
  const bool early_lower = report::lower_is_better(early.monitor, early.mode);
  const bool apart = !early.monitor.empty() && (early.monitor != job.checkpoint.monitor || early_lower != lower);
  // A state without `monitor` may come from an older version, whose `best` was the best value of
  // early_stopping.monitor. It is dropped, because it says nothing about checkpoint.monitor.
  if (apart && before.monitor.empty()) state.best.reset();
  if (const auto value = value_of(metrics, job.checkpoint.monitor)) {
    const double min_delta = early.monitor.empty() || apart ? 0.0 : early.min_delta;
    verdict.improved = report::improves(*value, state.best, lower, min_delta);
    if (verdict.improved) {
      state.monitor = job.checkpoint.monitor;
      state.best = value;
      remember(state, step, job.checkpoint.keep_best);
    }
    if (!apart) {
      const int64_t without = verdict.improved ? 0 : state.patience.without_improvement + 1;
      state.patience = {state.best, state.best_step, without};
    }
  }
  if (const auto value = value_of(metrics, early.monitor); apart && value)
    report::take(state.patience, step, *value, early_lower, early.min_delta);
  state = decide_end(std::move(state), job);
  return verdict;
}

}  // namespace sinew::loop
