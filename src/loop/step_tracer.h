// Records what each lane does in some steps of a run. Private to loop/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/stage_timer.h"
#include "report/report.h"

namespace sinew::loop {

// It records the sixth to tenth step of an attempt, because the first ones are slower, or what a shorter attempt has of
// these. The thread that makes the steps calls it between them. Times are on the scale of the timer's clock.
class StepTracer {
 public:
  explicit StepTracer(StageTimer* stages) : stages_(stages) {}  // null: nothing is recorded
  // `step` is about to begin. Returns the text of trace.json when the last of the steps has ended.
  std::optional<std::string> next_step(Step step, double now);
  std::optional<std::string> end(double now);  // no further step begins

 private:
  StageTimer* stages_;
  int64_t seen_ = 0;  // steps that have begun
  std::vector<report::TracedStep> traced_;
};

}  // namespace sinew::loop
