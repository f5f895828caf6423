// Population-based training (tune.sampler: pbt): each trial is one generation of a member's training, and starts from
// the final state of a trial of the generation before.
//
// The trials 0 ... population-1 are the first generation, the next `population` trials the second, and so on. A trial
// of a built-in training ends its generation by budget.training. A command does not know its generations, so the study
// asks it to save and end after its last evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "spec/spec.h"
#include "study/trial_metrics.h"
#include "tune/tune.h"

namespace sinew::study {

inline bool trains_in_generations(std::string_view sampler) {
  return sampler == "pbt";
}

// Decides when a command has reached the end of its trial's generation.
class GenerationEnd {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  // the training ends by itself
  // The trial ends at evaluation number `evaluations`, counted over all its processes. Earlier processes of the trial
  // measured `found` evaluations. If `found` is not below `evaluations`, the last process was killed before it saved.
  // The trial then ends at its first evaluation after the `found` ones.
  explicit GenerationEnd(int64_t evaluations = kNever, int64_t found = 0) : evaluations_(evaluations), found_(found) {}

  // Call it for each evaluation, with the numbers of TrialMetrics. If the numbers begin again, the new process started
  // from an earlier state. Returns true once: at the evaluation that ends the generation.
  bool ends_at(int64_t evaluation);
  bool reached() const { return reached_; }
  int64_t evaluations() const { return evaluations_; }

 private:
  int64_t evaluations_, found_, newest_ = 0;
  bool reached_ = false;
};

class Generations {
 public:
  // `disk` holds the run directories. `evaluations` is the number of evaluations of all generations together.
  // `directory_of` and `metrics_of` give the run directory and the metrics of a trial.
  Generations(Disk& disk, const spec::Job& job, double evaluations, std::function<std::string(int64_t)> directory_of,
              std::function<TrialMetrics(int64_t)> metrics_of);

  // Copies the newest checkpoint of trial `from` into the directory of trial `id`, unless that directory has a
  // checkpoint. Throws Error if there is no checkpoint to start from.
  void copy_state(int64_t id, std::optional<int64_t> from) const;
  // Returns the overrides that make a built-in training end with its generation. Returns none for a command, and none
  // in the last generation.
  std::vector<std::string> overrides(int64_t id) const;
  // Returns the end of the generation for a process of the trial that is about to start. If a command trained beyond
  // the end of its generation before it saved, the surplus counts for the trial that starts from its state.
  GenerationEnd end_of(const tune::Study& study, int64_t id) const;
  // Returns whether the next generation can start from the final state of this trial. A built-in training always saves
  // when its budget ends.
  bool saved(int64_t id) const;
  // Returns the newest values that were measured of the state that a trial starts from; empty if there are none.
  std::vector<double> inherited_values(const tune::Study& study, int64_t id) const;

 private:
  bool is_last(int64_t id) const { return id / population_ + 1 >= generations_; }
  TrialMetrics measured(int64_t id) const;
  std::string checkpoints_of(int64_t id) const;

  Disk& disk_;
  bool command_;
  int64_t population_, generations_;
  double evaluations_;  // the evaluations of one generation
  spec::Duration interval_;
  std::function<std::string(int64_t)> directory_of_;
  std::function<TrialMetrics(int64_t)> metrics_of_;
};

}  // namespace sinew::study
