// The trials of a population (tune.sampler: pbt): each is a part of a training, and goes on from the state that a trial
// of the part before ended with.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/trial_metrics.h"
#include "spec/spec.h"
#include "tune/tune.h"

namespace sinew::cli {

class StudyParts {
 public:
  // `evaluations`: of a whole training; then a trial's directory, and what it measured.
  StudyParts(const spec::Job& job, double evaluations, std::function<std::string(int64_t)> directory_of,
             std::function<TrialMetrics(int64_t)> metrics_of);

  // Puts the state that a trial goes on from into its directory, unless it has one of its own already. Throws Error
  // when it is gone.
  void begin(int64_t id, std::optional<int64_t> from) const;
  // What makes a training end where its part does; of a command, and of the last part, nothing.
  std::vector<std::string> overrides(int64_t id) const;
  // After so many evaluations a command's part is over, and it is to save and end; never: it ends by itself. What those
  // before it trained beyond their ends, until they had saved, counts for this one.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  int64_t ends_after(const tune::Study& study, int64_t id) const;
  // Why a part that came to its end is worth nothing: what goes on from it finds no state. None: it does.
  std::optional<std::string> worthless(int64_t id) const;

 private:
  bool last(int64_t id) const { return id / population_ + 1 >= parts_; }
  std::string states_of(int64_t id) const { return directory_of_(id) + "/checkpoints"; }
  bool command_;
  int64_t population_, parts_;
  double evaluations_;  // of a part
  spec::Duration interval_;
  std::function<std::string(int64_t)> directory_of_;
  std::function<TrialMetrics(int64_t)> metrics_of_;
};

}  // namespace sinew::cli
