// Decides by the metrics of a run whether it ends: its objective is met, or early stopping sees no improvement.
//
// Pure. The state depends on the records so far alone, so a resumed run restores it from its metrics file.
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
  // Adds a record. Returns why the run should end; once there is a reason, later calls return it again.
  std::optional<Verdict> take(int64_t step, const report::Metrics& values);

  const std::optional<rundir::BestMetric>& best() const { return best_; }  // of the monitored metric
  std::optional<rundir::ObjectiveResult> objective() const;
  const report::Metrics& last() const { return last_; }

 private:
  bool better(double value) const;

  spec::EarlyStoppingOptions early_;
  std::optional<spec::Objective> objective_;
  std::string monitor_;  // of early stopping, else of the objective; empty: none
  bool lower_ = false;   // lower values of the monitor are better
  std::optional<rundir::BestMetric> best_;
  int64_t without_improvement_ = 0;
  double objective_value_;
  bool met_ = false;
  report::Metrics last_;
  std::optional<Verdict> verdict_;
};

}  // namespace sinew::jobs
