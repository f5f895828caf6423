// Decides from the metrics of a run whether the run must end: its objective is met, or early stopping finds no more
// improvement.
//
// The class is pure. Its state depends only on the records so far, so a resumed run restores it from its metrics file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jobs/attempt_state_machine.h"
#include "report/report.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::jobs {

class MetricWatch {
 public:
  explicit MetricWatch(const spec::Job& job);

  struct Verdict {
    StopReason reason = StopReason::objective;
    std::string why;
  };
  // Takes a record. Returns the reason why the run should end, if there is one. Later calls then return the same
  // reason.
  std::optional<Verdict> take(int64_t step, const report::Metrics& values);

  std::optional<rundir::BestMetric> best() const;  // the best value of the monitored metric
  std::optional<rundir::ObjectiveResult> objective() const;
  const report::Metrics& last() const { return last_; }

 private:
  spec::EarlyStoppingOptions early_;
  std::optional<spec::Objective> objective_;
  std::string monitor_;  // the metric of early stopping, or else of the objective; may be empty
  bool lower_ = false;   // true: lower values of the monitored metric are better
  report::BestSoFar so_far_;
  double objective_value_;
  bool met_ = false;
  report::Metrics last_;
  std::optional<Verdict> verdict_;
};

}  // namespace sinew::jobs
