#include "train/judge.h"

#include <cmath>
#include <sstream>

#include "train/resolve.h"

namespace sinew::train {

bool meets(const spec::Objective& objective, double value) {
  return objective.at_least ? value >= objective.value : value <= objective.value;
}

Judgement judge(const EvaluationState& before, Step step, const report::Metrics& metrics, const spec::Job& job) {
  Judgement verdict{before, false};
  verdict.state.last = metrics;
  const bool stops_early = !job.early_stopping.monitor.empty();
  const std::string& monitor = stops_early ? job.early_stopping.monitor : job.checkpoint.monitor;
  const std::string& mode = stops_early ? job.early_stopping.mode : job.checkpoint.mode;
  const double min_delta = stops_early ? job.early_stopping.min_delta : 0.0;
  if (const auto found = metrics.find(monitor); found != metrics.end()) {
    const double value = found->second;
    const bool lower = monitor_lower_is_better(mode, monitor);
    const bool better = !before.best || (lower ? value < *before.best - min_delta : value > *before.best + min_delta);
    if (better && !std::isnan(value)) {
      verdict.improved = true;
      verdict.state.best = value;
      verdict.state.best_step = step;
      verdict.state.without_improvement = 0;
    } else {
      ++verdict.state.without_improvement;
    }
    if (stops_early && verdict.state.without_improvement >= job.early_stopping.patience) {
      std::ostringstream why;
      why << monitor << " did not improve in " << verdict.state.without_improvement << " evaluations; its best was "
          << verdict.state.best.value_or(std::nan("")) << " at step " << verdict.state.best_step;
      verdict.state.stop = why.str();
    }
  }
  if (job.objective) {
    if (const auto found = metrics.find(job.objective->metric);
        found != metrics.end() && meets(*job.objective, found->second)) {
      std::ostringstream why;
      why << "objective met: " << job.objective->metric << " is " << found->second
          << (job.objective->at_least ? ", at least " : ", at most ") << job.objective->value;
      verdict.state.objective_met = true;
      verdict.state.stop = why.str();
    }
  }
  return verdict;
}

}  // namespace sinew::train
