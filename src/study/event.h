// Defines the head and the events of a study, and applies events to a tune::Study. RecordFile (record_file.h) keeps
// them on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/aim.h"
#include "tune/tune.h"

namespace sinew::study {

// The head of a study: how it began.
struct StudyHead {
  std::string job;                     // the text of the job file, as given
  std::vector<std::string> overrides;  // from the command line
  std::string sampler, pruner;
  StudyAim aim;
  int64_t trials = 0;       // planned trials when the study began
  double max_resource = 0;  // evaluations of a training that runs to its end; 0 if unknown
};

struct StudyEvent {
  // - start, resume, take: a leader has started a process of the trial. With take, it took the trial over from a leader
  //   that died.
  // - leave: the trial's process has saved and ended because its leader stops.
  // - extend: the plan has changed.
  // - retry: a leader has opened a trial again that had failed; a process continues it.
  enum class Kind { start, report, pause, resume, end, extend, take, leave, retry };
  Kind kind = Kind::start;
  int64_t id = 0;                                       // the id of the trial
  tune::Suggestion suggestion = {};                     // start
  double step = 0, value = 0;                           // report
  tune::TrialState state = tune::TrialState::complete;  // end
  Outcome outcome = {};                                 // end
  std::optional<double> estimate = {};                  // pause: the final value that the pruner expects
  int64_t trials = 0;                                   // extend: the planned trials in all from now on
  std::optional<double> cost = {};                      // extend: the limit of the cost of all trials from now on
  // start, resume, take, retry: the leader that runs the trial from now on.
  std::string leader = {};
  std::optional<double> seconds = {};  // how long the trial has trained, in all its processes
};

// Returns whether the event says that a leader has started a process of the trial.
bool starts_process(const StudyEvent& event);

// Applies an event to a tune::Study. Throws Error if this event cannot come after those already applied.
void apply(tune::Study& study, const StudyEvent& event);

// Returns how many trials are planned after these events.
int64_t planned_trials(const StudyHead& head, const std::vector<StudyEvent>& events);

// Returns the options of the tune::Study of a study with this head.
tune::StudyOptions study_options(const StudyHead& head, const tune::Space& space, uint64_t seed);

}  // namespace sinew::study
