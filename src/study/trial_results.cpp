#include "study/trial_results.h"

#include "report/report.h"
#include "study/directory.h"

namespace sinew::study {
namespace {

// Returns the metric whose best weights a training restores at its end, or "" if the training keeps its last weights.
std::string restored_by(const spec::Job& job) {
  const auto& early = job.early_stopping;
  if (job.command.given() || early.monitor.empty() || !early.restore_best) return "";
  if (job.checkpoint.monitor != "auto") return job.checkpoint.monitor;
  return job.objective ? job.objective->metric : early.monitor;
}

}  // namespace

TrialResults::TrialResults(const OpenStudy& study)
    : directory_(study.directory), metrics_(study::metrics_of(study.head.aim)) {
  const std::string metric = restored_by(study.job);
  if (metric.empty()) return;
  restores_best_ = true;
  lower_is_better_ = report::lower_is_better(metric, study.job.checkpoint.mode);
  metrics_.push_back(metric);
}

TrialMetrics TrialResults::metrics_of(int64_t id) const {
  return {trial_directory(directory_, id), metrics_};
}

std::vector<double> TrialResults::final_values(const TrialMetrics& metrics) const {
  return restores_best_ ? metrics.at_best(lower_is_better_) : metrics.last();
}

report::Metrics TrialResults::measured(int64_t id, const rundir::Outcome& ended) const {
  if (!restores_best_) {  // the report has them; it cannot be cut short as metrics.jsonl can
    report::Metrics last = ended.last;
    std::erase_if(last,
                  [](const auto& one) { return !one.first.starts_with("val/") && !one.first.starts_with("test/"); });
    return last;
  }
  std::vector<std::string> names;  // a metric of validation first, because TrialMetrics counts its lines
  for (const char* group : {"val/", "test/"}) {
    for (const auto& [name, value] : ended.last)
      if (name.starts_with(group)) names.push_back(name);
  }
  if (names.empty()) return {};
  std::vector<std::string> read = names;
  read.push_back(metrics_.back());
  TrialMetrics metrics(trial_directory(directory_, id), read);
  metrics.next();
  const std::vector<double> values = final_values(metrics);
  report::Metrics measured;
  for (size_t k = 0; k < names.size(); ++k) measured[names[k]] = values[k];
  return measured;
}

}  // namespace sinew::study
