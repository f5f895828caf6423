// Decides what a study does next: which trial to start, resume, pause or stop. It starts no process and reads no clock.
//
// The study's event log is the scheduler's only memory. The scheduler records each decision before it returns it, so
// the study can continue if a leader dies in between. A trial whose process died still counts as running in the event
// log; its next process starts from its checkpoint. Several leaders may share a study: each observes what the others
// recorded, then decides.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "study/deterministic_view.h"
#include "study/event.h"
#include "tune/tune.h"

namespace sinew::study {

struct SchedulerOptions {
  tune::StudyOptions study;
  std::string sampler = "auto", pruner = "auto";
  double max_resource = 0;          // evaluations of a training that runs to its end; 0 if unknown
  int64_t trials = 50;              // planned trials in all
  int64_t slots = 1;                // trials that this leader runs side by side
  bool end_early = false;           // true: the study ends when another trial is not expected to gain much
  std::optional<int64_t> lag = {};  // set only for a deterministic study (deterministic_view.h)
  // A trial fails when its process has died this many times in a row, without an evaluation between the deaths.
  int64_t max_deaths = 3;
  std::function<void(const StudyEvent&)> record = nullptr;  // the event must be durable when this function returns
  std::string leader = {};                                  // the name of this leader, which no other leader ever has
  // Returns whether that leader has died and no process of it still runs the trial. Null if there are no other leaders.
  std::function<bool(const std::string& leader, int64_t id)> abandoned = nullptr;
};

constexpr int64_t kDefaultLag = 4;  // the lag of a deterministic study that does not set tune.parallel

// Returns the options that the head and the job of a study imply. The caller adds earlier studies, the slots, the
// leader and the function `record`.
SchedulerOptions scheduler_options(const StudyHead& head, const spec::TuneOptions& tune, const tune::Space& space);

// Which trials may start, depending on how much of the budget is used (drain_mode in budget.h). In every mode a trial
// whose process or leader died while it ran may continue.
enum class DrainMode {
  none,           // every trial may start: enough of the budget is left
  no_new_trials,  // paused trials may resume, but no new ones start
  finish_started  // no other trial may start or resume
};

struct TrialStart {
  int64_t id = 0;
  bool continues = false;  // true: the trial continues from its checkpoint
  std::string why;
};

struct TrialEnd {
  std::string why;         // a sentence for the user
  bool best = false;       // true: the trial is among the best of the study so far
  bool resumable = false;  // true: the trial's checkpoints are still needed
};

// Returns whether a process ended as one ends that was asked to: with kResumable, or with 128 + SIGTERM. The latter is
// a command that saved nothing; the next process of its trial starts from the beginning.
bool ended_as_asked(const ProcessEnd& end);

class TrialScheduler {
 public:
  // `events` are the events so far of a study that continues. The scheduler applies them and does not record them
  // again. Throws UsageError if no study can run with these options.
  TrialScheduler(SchedulerOptions options, const std::vector<StudyEvent>& events = {});

  // Applies an event that another leader recorded.
  void observe(const StudyEvent& event);
  // Returns the next process to start, or nullopt if all slots are taken or there is nothing to start now.
  std::optional<TrialStart> next(DrainMode drain = DrainMode::none);
  // Returns whether no leader runs a trial and the last next() found nothing to start.
  bool over(DrainMode drain = DrainMode::none) const;

  // Sets the number of slots. Trials that already run keep running; the caller must end those that are too many.
  void set_slots(int64_t slots) { options_.slots = slots; }

  // Handles an evaluation of a trial that this leader runs. Ignores a step that was reported before. Returns true if
  // the caller must ask the process to save a checkpoint and end; `why` is then the reason.
  bool report(int64_t id, double step, double value, std::string& why);
  // Handles the end of a trial's process. `outcome` is the trial's outcome if its training is complete. `gave_way`
  // means that the caller ended the process to free cores; this does not count as a death.
  TrialEnd end(int64_t id, const ProcessEnd& end, std::optional<Outcome> outcome, bool gave_way = false);
  // Marks a trial as failed, because its process ended and its result is unusable.
  TrialEnd fail(int64_t id, const std::string& why);

  bool pauses() const { return pruner_->pauses(); }
  // Returns whether a later trial may start from the final state of this trial.
  bool needs(int64_t id) const { return sampler_->needs(study_, id); }
  // The reason why no new trials start although more are planned.
  const std::optional<std::string>& ended_early() const { return ended_early_; }

  const tune::Study& study() const { return study_; }
  std::vector<int64_t> best() const { return tune::best_trials(study_); }
  std::vector<int64_t> running() const;  // the trials that this leader runs

 private:
  struct Run {
    std::optional<tune::PruneDecision> asked;  // why the trial was asked to end
    std::optional<double> estimate;            // the pruner's estimate when it made that decision
    std::optional<tune::Study> view;           // in a deterministic study: what the pruner sees
  };
  tune::Verdict judge(const tune::Trial& trial, std::optional<tune::Study>& view);
  bool prune_if_decided(int64_t id);
  void record(StudyEvent event);
  std::optional<TrialStart> take_over_abandoned();
  std::optional<std::string> why_end_early();
  TrialStart start(int64_t id, bool continues, std::string why);
  TrialEnd end_trial(int64_t id, tune::TrialState state, Outcome outcome, std::string why);

  SchedulerOptions options_;
  tune::Study study_;
  std::unique_ptr<tune::Sampler> sampler_;
  std::unique_ptr<tune::Pruner> pruner_;
  std::optional<std::string> ended_early_;
  std::optional<DeterministicView> deterministic_;  // set only in a deterministic study
  std::map<int64_t, Run> running_;                  // the trials that this leader runs
  // The leader of each trial that is running according to the event log.
  std::map<int64_t, std::string> leader_of_;
  std::map<int64_t, int64_t> deaths_;  // deaths of each trial in a row
  // If set, next() found nothing to start in this mode, and nothing has happened since. next() then does not ask the
  // pruner again.
  std::optional<DrainMode> idle_in_;
};

// Returns how many evaluations a training of this job has, or 0 if this is unknown before it runs.
double evaluations_of(const spec::Job& job);

}  // namespace sinew::study
