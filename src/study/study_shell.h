// Runs the trials of a study as child processes, side by side. The TrialScheduler decides; this class acts.
//
// All leaders of a study run this code. Each leader acts only while it holds the study's lock, and only after it has
// read what the others recorded.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/shell_loop.h"
#include "base/signals.h"
#include "study/budget.h"
#include "study/generations.h"
#include "study/leader.h"
#include "study/model_cleanup.h"
#include "study/open_study.h"
#include "study/record_file.h"
#include "study/scheduler.h"
#include "study/slots.h"
#include "study/study.h"
#include "study/trial_launcher.h"
#include "study/trial_processes.h"
#include "study/trial_results.h"

namespace sinew::study {

// turn() returns an exit code when the shell is finished: kDone (the study has a best trial), kTrainingError (it has
// none), or kResumable (a signal stopped it).
class StudyShell final : public Shell {
 public:
  // All arguments except `slots` must outlive the shell. `study.events` are the events that `record` has read.
  StudyShell(const Options& options, const OpenStudy& study, RecordFile& record, StudyLeader& leader,
             const TrialSlots& slots);

  void on_signal(int signal) override { stop_.add(signal); }
  std::optional<int> turn() override;
  std::vector<int> descriptors() const override { return trials_.descriptors(); }

 private:
  SchedulerOptions scheduler_options();
  void follow_free_cores(double now);
  // Reads what other leaders recorded. The caller holds the lock of the study.
  void catch_up();
  // Starts and ends trials. Returns true once the study is over. The callers of all functions from here to
  // final_values() hold the lock of the study.
  bool advance();
  void start_trials(DrainMode drain);
  void check_trials();
  void take_evaluations(int64_t id, TrialProcess& trial);
  void take_end(int64_t id, const TrialProcess& trial, const ProcessEnd& end);
  std::vector<double> final_values(int64_t id, const TrialProcess& trial) const;

  // Lets trials save and end, or kills them. Returns true once all have ended.
  bool stop_trials();
  // Records for later leaders how long the trials have trained.
  void record_seconds();
  int finish();
  rundir::Outcome outcome() const;  // of a cross-validation
  int finish_folds();

  void say(const std::string& line) const;
  void say(int64_t id, const std::string& text) const;
  void say_end(int64_t id, const TrialEnd& end) const;
  void show_table(double now);

  const Options& options_;
  const OpenStudy& study_;
  const bool folds_;  // the study is a cross-validation
  tune::Space space_;
  RecordFile& record_;
  StudyLeader& leader_;
  TrialSlots slots_;
  std::set<int> cores_;
  StudyBudget budget_;
  TrialResults results_;
  std::optional<Generations> generations_;  // only for population-based training
  TrialLauncher launcher_;
  TrialScheduler scheduler_;
  ModelCleanup cleanup_;
  TrialProcesses trials_;
  StopRequests stop_;
  double locked_at_;  // when this leader last held the lock of the study
  double shown_at_;
};

}  // namespace sinew::study
