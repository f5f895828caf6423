#include "study/deterministic_view.h"

#include "base/check.h"

namespace sinew::study {

using tune::Study;
using tune::Trial;

bool DeterministicView::ready(const Study& study) const {
  return study.open().empty() || study.open().front() > study.next_id() - lag_;
}

void DeterministicView::copy_start(Study& to, const Trial& trial) const {
  to.start({trial.point, trial.by, trial.why, trial.sampler_state, trial.gain, trial.from});
}

void DeterministicView::copy_end(Study& to, const Trial& trial) const {
  for (const tune::Report& report : trial.reports) to.report(trial.id, report.step, report.value);
  to.tell(trial.id, trial.state, trial.values, trial.constraints);
}

// Brings the view up to date: starts and ends trials in the order that they would have if all took equally long.
const Study& DeterministicView::view(const Study& study) {
  SINEW_CHECK(ready(study), study.next_id());
  view_.extend(study.options().budget);
  while (true) {
    const int64_t next = view_.next_id();
    for (; ended_ <= next - lag_; ++ended_) copy_end(view_, study.trial(ended_));
    if (next == study.next_id()) return view_;
    copy_start(view_, study.trial(next));
  }
}

Study DeterministicView::view_of(const Study& study, int64_t trial) const {
  Study view(study.options());
  for (int64_t id = 0; id <= trial; ++id) {
    copy_start(view, study.trial(id));
    if (id <= trial - lag_) copy_end(view, study.trial(id));
  }
  return view;
}

}  // namespace sinew::study
