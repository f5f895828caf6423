// Reads what the trainings of a study measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/report.h"
#include "rundir/rundir.h"
#include "study/open_study.h"
#include "study/trial_metrics.h"

namespace sinew::study {

class TrialResults {
 public:
  explicit TrialResults(const OpenStudy& study);

  // Returns a reader of the metrics that the search needs. It starts at the beginning of the trial's metrics file.
  TrialMetrics metrics_of(int64_t id) const;
  // Returns the values of metrics_of(aim) for the weights with which a training ended. These are the last values, or
  // the best ones if the job restores the best weights (early_stopping.restore_best).
  std::vector<double> final_values(const TrialMetrics& metrics) const;
  // Returns all metrics of validation and test for these weights. `ended` is the report of the trial.
  report::Metrics measured(int64_t id, const rundir::Outcome& ended) const;

 private:
  std::string directory_;
  std::vector<std::string> metrics_;
  bool restores_best_ = false, lower_is_better_ = true;
};

}  // namespace sinew::study
