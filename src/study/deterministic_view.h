// What a deterministic study's sampler and pruner may know: the trials in the order they began, never in the order
// they happened to end.
//
// With a lag of L, trial i is suggested from the results of the trials 0 … i-L and from the points of those between.
// So it waits until those have ended, and looks past what has ended since: suggestion i is the same with 1, 2 or L
// trials side by side, however long each takes. A trial is judged by its own reports and by what was known when it was
// suggested.
#pragma once

#include "tune/tune.h"

namespace sinew::study {

class ToldInOrder {
 public:
  ToldInOrder(tune::StudyOptions options, int64_t lag) : view_(std::move(options)), lag_(lag) {}

  // Whether the next trial can be suggested: nothing it waits for is still open.
  bool ready(const tune::Study& study) const;
  // What the next trial is suggested from. `study` must be ready.
  const tune::Study& view(const tune::Study& study);
  // What `trial` was suggested from: with its own reports, what the pruner may see.
  tune::Study view_of(const tune::Study& study, int64_t trial) const;

 private:
  void copy_start(tune::Study& to, const tune::Trial& trial) const;
  void copy_end(tune::Study& to, const tune::Trial& trial) const;
  tune::Study view_;
  int64_t lag_;
  int64_t ended_ = 0;  // trials that have ended in the view: these first ones
};

}  // namespace sinew::study
