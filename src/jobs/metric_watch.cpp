#include "jobs/metric_watch.h"

#include <cmath>
#include <limits>

#include "base/number_text.h"
#include "rundir/rundir.h"

namespace sinew::jobs {
namespace {}  // namespace

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

bool MetricWatch::better(double value) const {
  if (std::isnan(value)) return false;
  if (!best_) return true;
  return lower_ ? value < best_->value - early_.min_delta : value > best_->value + early_.min_delta;
}

std::optional<MetricWatch::Verdict> MetricWatch::take(int64_t step, const report::Metrics& values) {
  for (const auto& [name, value] : values) last_[name] = value;
  if (const auto found = objective_ && !met_ ? values.find(objective_->metric) : values.end();
      found != values.end()) {  // a met objective stays met, although later metrics come while the run ends
    objective_value_ = found->second;
    met_ = objective_->at_least ? objective_value_ >= objective_->value : objective_value_ <= objective_->value;
    if (met_ && !verdict_) {
      verdict_ = {StopReason::objective,
                  "objective met: " + objective_->metric + " is " + rounded_text(objective_value_) +
                      (objective_->at_least ? ", at least " : ", at most ") + rounded_text(objective_->value)};
    }
  }
  const auto found = monitor_.empty() ? values.end() : values.find(monitor_);
  if (found == values.end()) return verdict_;
  if (better(found->second)) {
    best_ = {monitor_, found->second, step};
    without_improvement_ = 0;
  } else if (++without_improvement_ >= early_.patience && !early_.monitor.empty() && !verdict_) {
    verdict_ = {StopReason::early_stop,
                monitor_ + " has not improved in " + std::to_string(without_improvement_) + " reports" +
                    (best_ ? "; best " + rounded_text(best_->value) + " at step " + std::to_string(best_->step) : "")};
  }
  return verdict_;
}

std::optional<rundir::ObjectiveResult> MetricWatch::objective() const {
  if (!objective_) return std::nullopt;
  return rundir::ObjectiveResult{to_string(*objective_), met_, objective_value_};
}

}  // namespace sinew::jobs
