// Defines the aim of a study: its objectives and constraints.
#pragma once

#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::study {

struct StudyAim {
  struct Metric {
    std::string name;
    bool minimize = true;
    bool operator==(const Metric&) const = default;
  };
  std::vector<Metric> objectives;            // at least one; pruners judge by the first
  std::vector<spec::Objective> constraints;  // a feasible trial satisfies all of them
};

// Returns the aim of the tune section of a job. Throws UsageError if the job does not name a metric.
StudyAim aim_of(const spec::Job& job);

// Returns the names of all metrics in the aim, each once. The metric of the first objective comes first.
std::vector<std::string> metrics_of(const StudyAim& aim);

// The result of a trial.
struct Outcome {
  std::vector<double> values;            // one for each objective
  std::vector<double> constraints = {};  // how much each constraint is violated; 0 or less if it is satisfied
};
// `measured` has a value for each of metrics_of(aim), and NaN for a metric that was never measured.
Outcome outcome_of(const StudyAim& aim, const std::vector<double>& measured);

}  // namespace sinew::study
