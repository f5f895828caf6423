// Shows trials to the sampler and the pruner of a deterministic study in the order in which the trials started. The
// order in which they happened to end does not matter.
//
// With a lag of L, the sampler suggests trial i from the results of trials 0 ... i-L, and from the points of the trials
// after those. The study therefore waits until trials 0 ... i-L have ended, and hides the results of later trials that
// have ended already. Suggestion i is then the same with 1, 2 or L trials side by side, however long each takes. The
// pruner judges a trial by its reports and by what the sampler saw when it suggested the trial.
#pragma once

#include "tune/tune.h"

namespace sinew::study {

class DeterministicView {
 public:
  DeterministicView(tune::StudyOptions options, int64_t lag) : view_(std::move(options)), lag_(lag) {}

  // Returns whether the next trial can be suggested: every trial whose result the suggestion needs has ended.
  bool ready(const tune::Study& study) const;
  // Returns what the sampler sees when it suggests the next trial. `study` must be ready.
  const tune::Study& view(const tune::Study& study);
  // Returns what the sampler saw when it suggested `trial`.
  tune::Study view_of(const tune::Study& study, int64_t trial) const;

 private:
  void copy_start(tune::Study& to, const tune::Trial& trial) const;
  void copy_end(tune::Study& to, const tune::Trial& trial) const;
  tune::Study view_;
  int64_t lag_;
  int64_t ended_ = 0;  // the first `ended_` trials have ended in view_
};

}  // namespace sinew::study
