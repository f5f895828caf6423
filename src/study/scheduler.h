// What `sinew tune` does next: which trial to start, to go on with, to pause or to stop. Decides and records; starts no
// process and reads no clock.
//
// The study's record is the only memory: each decision is recorded before it is returned, so a process that dies in
// between leaves a study that goes on. A trial whose process died is still running in the record; its next life goes on
// from its checkpoint. Several processes may lead one study, each in its turn: it is told what the others recorded
// since its last, and then decides.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "study/deterministic_view.h"
#include "study/record_file.h"
#include "tune/tune.h"

namespace sinew::study {

// Whether a trial of this sampler is a part of a training, and goes on from the state of one of the part before.
inline bool trains_in_parts(std::string_view sampler) {
  return sampler == "pbt";
}

struct TuningOptions {
  tune::StudyOptions study;
  std::string sampler = "auto", pruner = "auto";
  double max_resource = 0;                                  // evaluations of a whole trial; 0: not known
  int64_t trials = 50;                                      // in all
  int64_t parallel = 1;                                     // processes side by side
  bool end_early = false;                                   // when there is little to gain
  std::optional<int64_t> lag = {};                          // deterministic: see told_in_order.h
  int64_t most_deaths = 3;                                  // of one trial without an evaluation between them: it fails
  std::function<void(const StudyEvent&)> record = nullptr;  // must be durable when it returns
  std::string process = {};                                 // this one's name in the record, never used before
  // Whether nobody works any more on the trial that this other process ran last; none: there is nobody else.
  std::function<bool(const std::string& process, int64_t id)> abandoned = nullptr;
};

constexpr int64_t kLag = 4;  // of a deterministic study that does not say tune.parallel

// As a study and its job say; what it takes from other studies and from this process is the caller's to add.
TuningOptions tuning_options(const StudyHead& head, const spec::TuneOptions& tune, const tune::Space& space);

// What may still begin: anything; no new trial, for time is nearly up; nothing but what was begun and is left alone.
enum class Hurry { none, no_new, over };

struct TrialStart {
  int64_t id = 0;
  bool again = false;  // goes on from its checkpoint
  std::string why;
};

// It left because it was asked to; a command that saved nothing leaves with the signal's code, and begins again.
bool left_as_asked(const ProcessEnd& end);

struct TrialOver {
  std::string why;         // a sentence for people
  bool best = false;       // it is among the best of the study so far
  bool resumable = false;  // its checkpoints are still needed
};

class Tuning {
 public:
  // `events`: of a study that goes on; they are applied, not recorded again. Throws Error where a study can not be led
  // as the options say.
  Tuning(TuningOptions options, const std::vector<StudyEvent>& events = {});

  // What another process recorded.
  void told(const StudyEvent& event);
  // The next process to start; none: all places are taken, or there is nothing (more) to do.
  std::optional<TrialStart> next(Hurry hurry = Hurry::none);
  // Nothing runs, here or elsewhere, and next() had nothing when it was asked last.
  bool over(Hurry hurry = Hurry::none) const;

  // How many processes run side by side from now on. Those that do already are the caller's to end.
  void set_parallel(int64_t processes) { options_.parallel = processes; }

  // An evaluation of a running trial; what was reported before, by its step, is passed over. True: its process is to be
  // asked to save a checkpoint and end, and `why` says for what.
  bool reported(int64_t id, double step, double value, std::string& why);
  // Its process ended. `outcome`: the trial's, when its training came to its end; absent otherwise. `gave_way`: it was
  // told to by the caller, which is no death of its own.
  TrialOver ended(int64_t id, const ProcessEnd& end, std::optional<Outcome> outcome, bool gave_way = false);

  // Its process came to its end, and what it made is worth nothing.
  TrialOver failed(int64_t id, const std::string& why);

  bool pauses() const { return pruner_->pauses(); }
  // Whether trials yet to come may go on from the state that this one ended with.
  bool needs(int64_t id) const { return sampler_->needs(study_, id); }
  // Why no new trials are begun though some are planned.
  const std::optional<std::string>& ended_early() const { return ended_early_; }

  const tune::Study& study() const { return study_; }
  std::vector<int64_t> best() const { return tune::best_trials(study_); }
  std::vector<int64_t> running() const;

 private:
  struct Life {
    std::optional<tune::PruneDecision> asked;  // to end: pause or stop
    std::optional<double> estimate;            // the pruner's, when it asked
    std::optional<tune::Study> view;           // of a deterministic study: what this trial is judged by
  };
  tune::Verdict judged(const tune::Trial& trial, std::optional<tune::Study>& view);
  bool settled(int64_t id);
  void record(StudyEvent event);
  std::optional<TrialStart> one_left_alone();
  std::optional<std::string> why_end_early();
  TrialStart begin(int64_t id, bool again, std::string why);
  TrialOver end_trial(int64_t id, tune::TrialState state, Outcome outcome, std::string why);

  TuningOptions options_;
  tune::Study study_;
  std::unique_ptr<tune::Sampler> sampler_;
  std::unique_ptr<tune::Pruner> pruner_;
  std::optional<std::string> ended_early_;
  std::optional<ToldInOrder> in_order_;     // of a deterministic study
  std::map<int64_t, Life> running_;         // by this process
  std::map<int64_t, std::string> process_;  // of those running in the record: who runs it, or ran it last
  std::map<int64_t, int64_t> deaths_;
  // next() had nothing in this hurry, and nothing happened since: pruners need not be asked again.
  std::optional<Hurry> in_vain_;
};

// How many evaluations a training of this job has; 0: that is not known before it runs.
double evaluations_of(const spec::Job& job);

}  // namespace sinew::study
