// Decides from the metrics of a run whether the run must end: its objective is met, or early stopping finds no
// improvement.
//
// It is pure. Its state depends only on the records so far, so a resumed run restores it from its metrics file.
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
  // Takes a record. Returns why the run should end, if there is a reason. Once there is one, later calls return it
  // again.
  std::optional<Verdict> take(int64_t step, const report::Metrics& values);

  const std::optional<rundir::BestMetric>& best() const { return best_; }  // of the monitored metric
  std::optional<rundir::ObjectiveResult> objective() const;
  const report::Metrics& last() const { return last_; }

 private:
  bool better(double value) const;

  spec::EarlyStoppingOptions early_;
  std::optional<spec::Objective> objective_;
  std::string monitor_;  // the metric of early stopping, else of the objective; may be empty
  bool lower_ = false;   // true: lower values of the monitored metric are better
  std::optional<rundir::BestMetric> best_;
  int64_t without_improvement_ = 0;
  double objective_value_;
  bool met_ = false;
  report::Metrics last_;
  std::optional<Verdict> verdict_;
};

}  // namespace sinew::jobs
