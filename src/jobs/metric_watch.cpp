#include "jobs/metric_watch.h"

#include <limits>

#include "rundir/rundir.h"

namespace sinew::jobs {

MetricWatch::MetricWatch(const spec::Job& job)
    : early_(job.early_stopping),
      objective_(job.objective),
      objective_value_(std::numeric_limits<double>::quiet_NaN()) {
  monitor_ = !early_.monitor.empty() ? early_.monitor : objective_ ? objective_->metric : "";
  if (monitor_.empty()) return;
  if (!early_.monitor.empty() && early_.mode != "auto") {
    lower_ = early_.mode == "min";
  } else if (objective_ && objective_->metric == monitor_) {
    lower_ = !objective_->at_least;
  } else {
    lower_ = report::lower_is_better(monitor_);
  }
}

std::optional<rundir::BestMetric> MetricWatch::best() const {
  if (!so_far_.best) return std::nullopt;
  return rundir::BestMetric{monitor_, *so_far_.best, so_far_.step.value};
}

std::optional<MetricWatch::Verdict> MetricWatch::take(int64_t step, const report::Metrics& values) {
  for (const auto& [name, value] : values) last_[name] = value;
  if (const auto found = objective_ && !met_ ? values.find(objective_->metric) : values.end();
      found != values.end()) {  // a met objective stays met, even if later metrics arrive while the run ends
    objective_value_ = found->second;
    met_ = report::meets(*objective_, objective_value_);
    if (met_ && !verdict_) verdict_ = {StopReason::objective, report::objective_met(*objective_, objective_value_)};
  }
  const auto found = monitor_.empty() ? values.end() : values.find(monitor_);
  if (found == values.end()) return verdict_;
  const bool improved = report::take(so_far_, Step(step), found->second, lower_, early_.min_delta);
  const bool lost_patience = !improved && !early_.monitor.empty() && so_far_.without_improvement >= early_.patience;
  if (lost_patience && !verdict_)
    verdict_ = {StopReason::early_stop, report::not_improved(monitor_, so_far_, "reports")};
  return verdict_;
}

std::optional<rundir::ObjectiveResult> MetricWatch::objective() const {
  if (!objective_) return std::nullopt;
  return rundir::ObjectiveResult{to_string(*objective_), met_, objective_value_};
}

}  // namespace sinew::jobs
