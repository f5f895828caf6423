// Shows the trials to the sampler and the pruner of a deterministic study: in the order they started, never in the
// order they happened to end.
//
// With a lag of L, trial i is suggested from the results of the trials 0 ... i-L and the points of the trials between
// them. So the study waits until trials 0 ... i-L have ended, and hides the results of later trials that have ended
// already. Suggestion i is then the same with 1, 2 or L trials side by side, however long each takes. The pruner judges
// a trial by the reports of that trial and by what the sampler saw when it suggested the trial.
#pragma once

#include "tune/tune.h"

namespace sinew::study {

class DeterministicView {
 public:
  DeterministicView(tune::StudyOptions options, int64_t lag) : view_(std::move(options)), lag_(lag) {}

  // Whether the next trial can be suggested: no trial whose result it needs is open.
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
