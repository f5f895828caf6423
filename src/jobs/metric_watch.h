// Whether the metrics of a run say that it may end: its objective is met, or it does not improve any more.
//
// Pure. The state is a function of the records so far, so a run that goes on gives it the records of its file again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jobs/conduct.h"
#include "report/report.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::jobs {

class MetricWatch {
 public:
  explicit MetricWatch(const spec::Job& job);

  struct Verdict {
    Cause cause = Cause::objective;
    std::string why;
  };
  // Once there is a reason to end, it stays.
  std::optional<Verdict> take(int64_t step, const report::Metrics& values);

  const std::optional<rundir::BestMetric>& best() const { return best_; }  // of the monitored metric
  std::optional<rundir::ObjectiveResult> objective() const;
  const report::Metrics& last() const { return last_; }

 private:
  bool better(double value) const;

  spec::EarlyStoppingOptions early_;
  std::optional<spec::Objective> objective_;
  std::string monitor_;  // early stopping's, else the objective's; empty: none
  bool lower_ = false;
  std::optional<rundir::BestMetric> best_;
  int64_t without_improvement_ = 0;
  double objective_value_;
  bool met_ = false;
  report::Metrics last_;
  std::optional<Verdict> verdict_;
};

}  // namespace sinew::jobs
