// What a study searches for: its objectives and constraints.
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
  std::vector<spec::Objective> constraints;  // what a good trial satisfies
};

// What a job's tune section searches for. Throws UsageError if the job does not say by which metric.
StudyAim aim_of(const spec::Job& job);

// The names of all metrics in the aim, each once; the first objective's is the first.
std::vector<std::string> metrics_of(const StudyAim& aim);

// What a trial came to.
struct Outcome {
  std::vector<double> values;            // one for each objective
  std::vector<double> constraints = {};  // how much each constraint is violated; at most 0: satisfied
};
// `measured`: a value for each of metrics_of(aim); NaN: never measured.
Outcome outcome_of(const StudyAim& aim, const std::vector<double>& measured);

}  // namespace sinew::study
