// The trials of a population (tune.sampler: pbt): each is a part of a training, and goes on from the state that a trial
// of the part before ended with.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "spec/spec.h"
#include "study/trial_metrics.h"
#include "tune/tune.h"

namespace sinew::study {

// When the part of a command is over: it is to save then, and to end.
class PartEnd {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  // it ends by itself
  // `after` so many evaluations. `found`: those of lives before this one. Where they are as many already, that life
  // ended before it had saved: this one is over at its first evaluation.
  explicit PartEnd(int64_t after = kNever, int64_t found = 0) : after_(after), found_(found) {}

  // In their order, as TrialMetrics counts them; numbers that come again are of a life that began behind them. True,
  // once: by this one it is over.
  bool is_over_by(int64_t evaluation);
  bool over() const { return over_; }
  int64_t after() const { return after_; }

 private:
  int64_t after_, found_, seen_ = 0;
  bool over_ = false;
};

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
  // Of a trial that is about to begin or to go on. What those before it trained beyond their ends, until they had
  // saved, counts for this one.
  PartEnd end_of(const tune::Study& study, int64_t id) const;
  // Whether the next part finds the state that this one ended with. A training's budget ends with a checkpoint.
  bool saved(int64_t id) const;
  // What was measured last of the state that a trial goes on from.
  std::vector<double> carried(const tune::Study& study, int64_t id) const;

 private:
  bool last(int64_t id) const { return id / population_ + 1 >= parts_; }
  TrialMetrics measured(int64_t id) const;
  std::string states_of(int64_t id) const { return directory_of_(id) + "/checkpoints"; }
  bool command_;
  int64_t population_, parts_;
  double evaluations_;  // of a part
  spec::Duration interval_;
  std::function<std::string(int64_t)> directory_of_;
  std::function<TrialMetrics(int64_t)> metrics_of_;
};

}  // namespace sinew::study
