// Part of loop.h: the control log and the control messages of steps. In the log the leader records the inputs from
// outside the state (signals, the clock, users), each with the step at which it takes effect.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace sinew::loop {

// An input from outside the training state (a signal, the clock, a user) that changes the training. It takes effect at
// a step that no member has started yet.
struct ControlEntry {
  enum class Kind {
    stop,
    checkpoint,
    evaluate,
    learning_rate,
    batch_size,
    max_duration,
    schedule_steps,
    experiment,           // see base/experiment.h
    checkpoint_interval,  // of this attempt, in seconds
    checkpoint_steps,     // the same in steps
    loader_threads        // of each worker, in this attempt
  };
  Step effective;
  Kind kind = Kind::stop;
  // learning_rate: factor on the schedule; batch_size: samples; stop: exit code; max_duration: steps of the whole
  // training, 0 if that is a time; schedule_steps: the last step of the schedule, estimated from the clock; experiment:
  // the steps of a window
  double value = 0;
  std::string reason;   // a sentence
  bool done = false;    // true: the entry was applied in this state, so a resume does not apply it again
  int64_t request = 0;  // number among the requests of users in this attempt; 0: not a user's request
};
std::string to_string(ControlEntry::Kind kind);
std::string to_text(const ControlEntry& entry);  // the kind, and the value if that is an option of the job
std::optional<ControlEntry::Kind> control_kind(std::string_view name);

// The reason of a user's request, or a sentence that says that there was a request if the user gave no reason.
std::string reason_of_request(const ControlEntry& request);

// Entries as JSON text, for checkpoints.
std::string entries_json(const std::vector<ControlEntry>& entries);
std::vector<ControlEntry> entries_of_json(const std::string& text);  // throws Error if `text` is no list of entries

// The control message of a step. The leader sends it with the step, and the reduced result brings it to all members
// before any of them changes its state.
struct StepMessage {
  // The learning rate of this step. A schedule uses functions of libm (cos, pow), which two builds of libm, or one
  // build on two processors, may round differently. So no member uses a rate that it computed itself, unless it leads.
  double learning_rate = 0;
  std::vector<ControlEntry> entries;  // take effect at the next step
};
std::string to_text(const StepMessage& message);
// Throws Error if to_text() did not make the text, or if a number is not finite.
StepMessage step_message_of(const std::string& text);

class ControlLog {
 public:
  void append(ControlEntry entry);
  const std::vector<ControlEntry>& entries() const { return entries_; }
  int64_t newest_request() const;  // 0 if no entry came from a request
  // Returns the entries of this step that were not applied yet, except stops, and sets their `done`.
  std::vector<ControlEntry> apply(Step step);
  // Returns the stop entry of this step. A stop never gets `done`, because a member that receives the state of this
  // step must stop, too.
  std::optional<ControlEntry> stop_at(Step step) const;
  double learning_rate_factor(Step step) const;  // 1 unless an entry changed it
  int64_t batch_size(Step step, int64_t from_job) const;
  bool changes_batch_size() const;
  std::optional<int64_t> loader_threads(Step step) const;  // nullopt: the job file says it
  // The newest entry that changes how often the run saves; nullopt: the job file says it.
  std::optional<ControlEntry> checkpoint_interval(Step step) const;
  std::optional<int64_t> schedule_steps(Step step) const;  // the newest estimate; nullopt: there is none
  // Removes the entries that a resume at `step` must not repeat. From that step on, these are stops, because a stop
  // ends an attempt and not the run, and evaluations and experiments that were not made. After a resume, the job file
  // alone sets checkpoint.interval and data.prefetch.threads, so such entries of any step are removed. A checkpoint of
  // `step` was saved before such an evaluation; if the evaluation were made now, the same step would get a second
  // digest.
  void resume_at(Step step);
  // The digest covers only entries that change the numbers of a step (learning_rate, batch_size, schedule_steps).
  // Stopping, evaluating and saving leave the model unchanged. A run that was stopped and resumed therefore has the
  // same digests as a run that was not.
  std::string digest_text(Step up_to) const;

 private:
  // The value of the newest entry of this kind that has an effect at the step.
  const ControlEntry* newest_of(std::initializer_list<ControlEntry::Kind> kinds, Step step) const;  // null: none
  std::optional<double> newest(ControlEntry::Kind kind, Step step) const;
  std::vector<ControlEntry> entries_;
};

}  // namespace sinew::loop
