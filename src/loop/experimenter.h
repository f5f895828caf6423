// Makes an experiment with the steps of a run: sets the condition of each step and measures it. Private to loop/.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/experiment.h"
#include "loop/loop.h"

namespace sinew::loop {

// The thread that makes the steps calls it.
class Experimenter {
 public:
  // `wanted`: an experiment is to be made without a request. Both references must outlive this object.
  Experimenter(bool wanted, Trainer& trainer, const Clock& clock) : wanted_(wanted), trainer_(trainer), clock_(clock) {}
  // Returns the steps of a window, once, if an experiment is wanted and the pace of the steps is known.
  std::optional<int64_t> due(const Pace& steps);
  // All members begin at the same step. They all go through all conditions, so that their windows agree; a worker that
  // is alone leaves out those that it cannot have. A second experiment replaces the first one.
  void begin(int64_t window, bool alone);
  void before_step();  // may wait some seconds for samples
  // Returns true after the last step of an experiment.
  bool after_step();
  const std::vector<ConditionTime>& results() const { return results_; }  // of the newest experiment

 private:
  bool wanted_;
  Trainer& trainer_;
  const Clock& clock_;
  std::optional<Experiment> experiment_;
  std::array<bool, kConditions> can_use_{};
  double began_ = 0;  // the step under way
  std::vector<ConditionTime> results_;
};

}  // namespace sinew::loop
