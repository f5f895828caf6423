// Reads some metrics of a trial while its training appends to metrics.jsonl.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rundir/rundir.h"

namespace sinew::study {

// Each line of metrics.jsonl that contains the first metric is an evaluation. Evaluations count from 1.
class TrialMetrics {
 public:
  TrialMetrics(const std::string& run_directory, std::vector<std::string> metrics);

  struct Evaluation {
    int64_t number = 0;
    double value = 0;  // the value of the first metric; NaN if it was not finite
  };
  // Returns the evaluations since the last call, in order. If a resumed training has shortened the file, the numbers
  // start at 1 again.
  std::vector<Evaluation> next();
  // Returns the newest value of each metric at the time of evaluation `number`. The value is NaN if the metric had none
  // until then.
  const std::vector<double>& at(int64_t number) const { return rows_[static_cast<size_t>(number - 1)]; }
  // The newest value of each metric.
  const std::vector<double>& last() const { return last_; }
  // Returns the values at the evaluation where the last of the metrics was best. A metric that was measured only after
  // that evaluation has its newest value.
  std::vector<double> at_best(bool lower_is_better) const;
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }

 private:
  void clear();
  void read_line(const std::string& line, std::vector<Evaluation>& evaluations);

  rundir::GrowingFile file_;
  std::vector<std::string> metrics_;
  std::vector<std::vector<double>> rows_;  // the values of metrics_ at each evaluation
  std::vector<double> last_;
};

}  // namespace sinew::study
