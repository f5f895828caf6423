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

}  // namespace sinew::study
