// Leads a search for good options of a job: which trials run, as processes of their own, and what is kept of them.
//
// A study is a directory (docs/formats/study.md). Several processes may lead one study at the same time. This room
// prints nothing, handles no signal and knows no path of its own: the caller gives it all of that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "base/signals.h"
#include "spec/spec.h"
#include "study/screen.h"

namespace sinew::study {

inline constexpr int64_t kMostTrials = 1'000'000, kMostSlots = 4096;

struct Options {
  std::string program;            // path of the `sinew` program: each trial is a process of it
  spec::Environment environment;  // for ${NAME} in job files
  std::function<void(const std::string& line)> output = nullptr;  // gets what happens, one line at a time
  StudyScreen* screen = nullptr;  // shows a table of the trials below the lines; null: there is no table
  std::optional<int64_t> slots;   // trials that this process runs at a time; none: as the job says
  // Writes data.json of a run directory that begins. The other directory is where digests of data are remembered.
  std::function<void(const spec::Job&, const std::string& run_directory, const std::string& digests)> record_data =
      nullptr;
  Disk& disk = system_disk();
  Clock& clock = system_clock();
};

// A study that this process takes part in. Other processes see that it does from begin() or resume() on, until it is
// destroyed.
class StudySession {
 public:
  virtual ~StudySession() = default;
  // Runs trials until nothing is left to do or a signal asks to stop: SIGINT, SIGTERM or SIGHUP lets trials save a
  // checkpoint and end, the second SIGINT or SIGTERM kills them. Call it once, on the thread that may start child
  // processes. Returns the exit code.
  virtual int run(SignalSource& signals) = 0;
};

struct NewStudy {
  std::string directory;
  std::string job_path, job_text;      // the path is for messages
  std::vector<std::string> overrides;  // of the command line
  spec::Job job;                       // what the text and the overrides say
};

// `options` must outlive the session. Throws UsageError where the job cannot be searched.
std::unique_ptr<StudySession> begin(const Options& options, const NewStudy& study);

// How a study changes when it goes on.
struct Extension {
  std::optional<int64_t> trials = {};  // planned in all
  int64_t more_trials = 0;             // beyond those that were planned
  std::optional<double> cost = {};     // what all trials may cost
};
std::unique_ptr<StudySession> resume(const Options& options, const std::string& directory, const Extension& extension);

// Prints the best trials and writes the page, DIR/report.html.
void report(const Options& options, const std::string& directory);

// Throws UsageError that names the job's file where no trial could meet tune.parameter_constraints.
void check_search(const spec::Job& job, const std::string& file);

}  // namespace sinew::study
