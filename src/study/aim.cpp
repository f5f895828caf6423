#include "study/aim.h"

#include <algorithm>

#include "base/error.h"
#include "report/report.h"

namespace sinew::study {
namespace {

// Returns the metric to search by if tune.objectives is not given.
std::string monitor_of(const spec::Job& job) {
  const std::string monitor = job.tune.monitor != "auto"         ? job.tune.monitor
                              : job.objective                    ? job.objective->metric
                              : job.checkpoint.monitor != "auto" ? job.checkpoint.monitor
                              : job.command.given()              ? job.early_stopping.monitor
                                                                 : "val/loss";
  if (monitor.empty())
    throw UsageError("TUNE_NO_METRIC", "the job does not say which metric of its command to search by",
                     "name it: 'tune: {monitor: val/loss}', or give an objective");
  return monitor;
}

StudyAim::Metric metric_of(const std::string& name, const std::string& mode) {
  return {name, report::lower_is_better(name, mode)};
}

}  // namespace

StudyAim aim_of(const spec::Job& job) {
  const spec::TuneOptions& tune = job.tune;
  StudyAim aim{{}, tune.constraints};
  if (tune.objectives.empty()) aim.objectives.push_back(metric_of(monitor_of(job), tune.mode));
  for (size_t k = 0; k < tune.objectives.size(); ++k)
    aim.objectives.push_back(metric_of(tune.objectives[k], tune.directions.empty() ? "auto" : tune.directions[k]));
  return aim;
}

std::vector<std::string> metrics_of(const StudyAim& aim) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto& objective : aim.objectives) add(objective.name);
  for (const spec::Objective& constraint : aim.constraints) add(constraint.metric);
  return names;
}

Outcome outcome_of(const StudyAim& aim, const std::vector<double>& measured) {
  const auto names = metrics_of(aim);
  const auto value_of = [&](const std::string& name) {
    return measured[static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
  };
  Outcome outcome;
  for (const auto& objective : aim.objectives) outcome.values.push_back(value_of(objective.name));
  for (const spec::Objective& constraint : aim.constraints) {
    const double above = value_of(constraint.metric) - constraint.value;
    outcome.constraints.push_back(constraint.at_least ? -above : above);
  }
  return outcome;
}

}  // namespace sinew::study
