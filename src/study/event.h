// What happens to a study: its head and its events. record_file.h keeps them on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/aim.h"
#include "tune/tune.h"

namespace sinew::study {

// How a study began.
struct StudyHead {
  std::string job;                     // the text of the job file, as given
  std::vector<std::string> overrides;  // of the command line
  std::string sampler, pruner;
  StudyAim aim;
  int64_t trials = 0;       // planned when the study began
  double max_resource = 0;  // evaluations of a whole trial; 0: unknown
};

struct StudyEvent {
  // start, resume, take: a leader has started a process of the trial. take: it replaces a leader that died.
  // leave: the trial's process saved and ended because its leader stops. extend: the plan has changed.
  enum class Kind { start, report, pause, resume, end, extend, take, leave };
  Kind kind = Kind::start;
  int64_t id = 0;                                       // of the trial
  tune::Suggestion suggestion = {};                     // start
  double step = 0, value = 0;                           // report
  tune::TrialState state = tune::TrialState::complete;  // end
  Outcome outcome = {};                                 // end
  std::optional<double> estimate = {};                  // pause: the final value that the pruner expects
  int64_t trials = 0;                                   // extend: planned in all from now on
  std::optional<double> cost = {};                      // extend: what all trials may cost from now on
  std::string leader = {};                              // start, resume, take: who runs the trial from now on
  std::optional<double> seconds = {};                   // how long the trial has trained, in all its processes
};

// Whether a leader has started a process of the trial.
bool starts_process(const StudyEvent& event);

// Repeats an event on tune/'s record. Throws Error if it cannot follow the events before it.
void apply(tune::Study& study, const StudyEvent& event);

// How many trials are planned after these events.
int64_t planned_trials(const StudyHead& head, const std::vector<StudyEvent>& events);

// The options of tune/'s record for a study with this head.
tune::StudyOptions study_options(const StudyHead& head, const tune::Space& space, uint64_t seed);

}  // namespace sinew::study
