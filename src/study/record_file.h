// A study on disk: study.jsonl, a line an event, appended and synced before anybody acts on it.
//
// docs/formats/study.md. What is read back, line after line, is the study as it was: suggestions go on from there. A
// torn last line is an event that nobody acted on, and is cut off. Several processes may append, each in its turn
// (study_processes.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "spec/spec.h"
#include "tune/tune.h"

namespace sinew::study {

// What a study searches for: which trainings are good.
struct StudyAim {
  struct Metric {
    std::string name;
    bool minimize = true;
    bool operator==(const Metric&) const = default;
  };
  std::vector<Metric> objectives;  // at least one; the first is the one that pruners judge by
  std::vector<spec::Objective> constraints;
};
// Every metric of it, once; the first objective's is the first.
std::vector<std::string> metrics_of(const StudyAim& aim);

// What a training came to: one value an objective, and of each constraint by how much it is violated (at most 0: it
// is met).
struct Outcome {
  std::vector<double> values, constraints = {};
};
// By what each of metrics_of() measured; NaN: never.
Outcome outcome_of(const StudyAim& aim, const std::vector<double>& measured);

// How a study was begun: the first line.
struct StudyHead {
  std::string job;                     // the job file's text, as given
  std::vector<std::string> overrides;  // of the command line
  std::string sampler, pruner;
  StudyAim aim;
  int64_t trials = 0;       // planned when it began
  double max_resource = 0;  // evaluations of a whole trial; 0: not known
};

struct StudyEvent {
  enum class Kind { start, report, pause, resume, end, extend, take, leave };
  Kind kind = Kind::start;
  int64_t id = 0;                                       // of the trial
  tune::Suggestion suggestion = {};                     // start
  double step = 0, value = 0;                           // report
  tune::TrialState state = tune::TrialState::complete;  // end
  Outcome outcome = {};                                 // end
  std::optional<double> estimate = {};                  // pause: what the pruner thinks it would end with
  int64_t trials = 0;                                   // extend: planned in all from now on
  std::optional<double> cost = {};                      // extend: what all of them may cost from now on
  std::string process = {};                             // start, resume, take: who runs it from now on
  std::optional<double> seconds = {};                   // of what happens to a trial: how long it has trained, in all
};

// What a study of this head is to tune/.
tune::StudyOptions study_options(const StudyHead& head, const tune::Space& space, uint64_t seed);

// How many trials are planned by now.
int64_t planned_trials(const StudyHead& head, const std::vector<StudyEvent>& events);

// The space of tune.search with tune.parameter_constraints. A choice's text is kept as a string whatever it is: "64",
// "[64, 64]".
tune::Space space_of(const spec::TuneOptions& tune);
// What the trial changes in the job, as dotted overrides.
std::vector<std::string> overrides_of(const tune::Space& space, const tune::Point& point);

std::string to_json(const StudyHead& head);
std::string to_json(const tune::Space& space, const StudyEvent& event);
void apply(tune::Study& study, const StudyEvent& event);
bool begins_life(const StudyEvent& event);  // of a trial, in the process it names

class StudyFile {
 public:
  // Makes the file with its head. Throws Error when there is one already.
  StudyFile(Disk& disk, const std::string& path, const StudyHead& head);
  // One to go on with: all that stands there is news.
  StudyFile(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  // What others appended since. At the beginning of each turn; a line that somebody died in the middle of is cut off.
  std::vector<StudyEvent> news(const tune::Space& space);
  void append(const tune::Space& space, const StudyEvent& event);  // durable when it returns, but for reports

 private:
  Disk& disk_;
  std::string path_;
  uint64_t known_ = 0;                // bytes of it that were read or written here
  int64_t lines_ = 0;                 // in them
  std::unique_ptr<Disk::File> file_;  // of this turn
};

struct ReadStudy {
  StudyHead head;
  std::vector<StudyEvent> events;
};
// Throws Error, with the line's number where one makes no sense.
ReadStudy read_study(Disk& disk, const std::string& path, const tune::Space& space);
// Only the first line, which says what the space is made of.
StudyHead read_study_head(Disk& disk, const std::string& path);

}  // namespace sinew::study
