// Runs a search for good options of a job: runs trials as child processes and keeps the best.
//
// A study is a directory (docs/formats/study.md). Several sessions, in one process or in many, may lead one study at
// the same time. The code in study/ prints nothing and installs no signal handler. The caller passes the program, the
// outputs and the environment in Options, the study's directory to each function, and the source of signals to run().
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
  // Returns the path of the `sinew` program; each trial is a process of it. It is called at each start, because an
  // upgrade may replace the file while the study runs.
  std::function<std::string()> program = nullptr;
  spec::Environment environment;  // for ${NAME} in job files
  // Receives messages about what happens, one line each; null: no output.
  std::function<void(const std::string& line)> output = nullptr;
  StudyScreen* screen = nullptr;  // shows a table of the trials below the messages; null: no table
  std::optional<int64_t> slots;   // trials that a session runs side by side; nullopt: as the job says
  // Writes data.json for a run directory before its training starts. `digest_cache` is a directory that caches digests
  // of data. If this function is null, the directories get no data.json.
  std::function<void(const spec::Job&, const std::string& run_directory, const std::string& digest_cache)> record_data =
      nullptr;
  Disk& disk = system_disk();
  Clock& clock = system_clock();
};

// One leader of a study. Other sessions see this leader from begin() or resume() until the object is destroyed.
class StudySession {
 public:
  virtual ~StudySession() = default;
  // Runs trials until the study is over or a signal stops it. SIGINT, SIGTERM or SIGHUP lets trials save a checkpoint
  // and end; a second SIGINT or SIGTERM kills them. Call this once. If the calling thread ends, its trials are killed.
  // Returns the exit code: kDone, kTrainingError (no trial is complete), or kResumable (a signal stopped the study).
  virtual int run(SignalSource& signals) = 0;
};

struct NewStudy {
  std::string directory;               // begin() creates it
  std::string job_path, job_text;      // the path is only for messages
  std::vector<std::string> overrides;  // from the command line
  spec::Job job;                       // the job as read from the text and the overrides
};

// Begins a study. Throws UsageError if the job cannot be searched, Error if the directory holds a study already. Reads
// all data of the job once, which may take long.
std::unique_ptr<StudySession> begin(const Options& options, const NewStudy& study);

// Begins a cross-validation, a study with a trial for each fold of data.split.folds. If `resume` is set and the
// directory holds one already, continues that. The directory is also that of a run: it gets a resolved.yaml, and at the
// end the means over the folds as metrics.
std::unique_ptr<StudySession> train_folds(const Options& options, NewStudy study, bool resume);

// How a study changes when it continues.
struct Extension {
  std::optional<int64_t> trials = {};  // the new number of planned trials
  int64_t more_trials = 0;             // trials in addition to the planned ones
  std::optional<double> cost = {};     // a new limit of what all trials may cost
};
// Continues a study. Throws Error if there is no study or its event log is damaged, UsageError if the study does not
// allow this extension.
std::unique_ptr<StudySession> resume(const Options& options, const std::string& directory, const Extension& extension);

// Outputs the best trials and writes the study's page, DIR/report.html.
void report(const Options& options, const std::string& directory);

bool is_study(Disk& disk, const std::string& directory);

// Throws UsageError that names the job's file if no trial could satisfy tune.parameter_constraints.
void check_search(const spec::Job& job, const std::string& file);

}  // namespace sinew::study
