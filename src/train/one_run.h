// Inside train/: one run, from a job to a model, through checkpoints, evaluations, stops and resumes; alone or as one
// of many. The parts: run.cpp (the loop), run_begin.cpp, run_save.cpp, run_show.cpp, run_end.cpp.
//
// The loop is the only place that looks at the clock, at signals and at what people ask for. Whatever they want becomes
// an entry of the control log that travels with the step under way and takes effect at the next one; the entries, the
// evaluations and the steps are then a function of the state.
#pragma once

#include "train/engine.h"
#include "train/judge.h"
#include "train/resolve.h"
#include "train/schedule.h"
#include "train/state.h"
#include "train/voice.h"

namespace sinew::train {

// Sums of the training metrics over some steps. Saved with the state, so that a resumed run writes the lines the
// undisturbed one would have written.
struct Window {
  report::Metrics sums;
  void add(const StepResult& step, double lr);
  report::Metrics means(bool classes) const;  // train/loss, train/accuracy
};

std::string listed(const report::Metrics& metrics);  // "  val/accuracy 0.9190  val/loss 0.2274"

class Run {
 public:
  Run(const RunOptions& options, Disk& disk, Clock& clock);
  RunResult train();

 private:
  // ---- run_begin.cpp
  void open();
  void join();
  std::optional<int64_t> budget_steps() const;  // of budget.training
  std::optional<checkpoint::Loaded> state_to_begin_with();
  void start_reporting(Step begins_at);
  void start_state(const std::optional<checkpoint::Loaded>& loaded);
  void restore_from(const checkpoint::Loaded& loaded);
  void say_start();

  // ---- run.cpp
  void loop();
  void measure();   // how many steps the training has, and how the learning rate moves over them
  bool one_turn();  // one step and what belongs to it; false: training is over
  struct Asked {
    bool evaluation = false, checkpoint = false;
  };
  Asked obey();
  void say_skipped(const SkippedSamples& skipped, const std::string& where);
  void one_step();
  void poll();
  void poll_signals();
  void poll_leaving();
  void poll_clock();
  bool can_do(const ControlEntry& entry);  // says why not
  void request(ControlEntry::Kind kind, double value, const std::string& reason, int64_t number = 0);
  void tell_work(Work::Kind kind);  // of the step thread between two steps
  bool evaluate();                  // true: the best so far, to be saved

  // ---- run_save.cpp
  checkpoint::Writer& writer();
  std::string mirror_of_run();
  void save(bool best);
  void submit_pending();
  void wait_for_disk();
  void finish_saving();

  // ---- run_show.cpp
  void log_window(bool evaluated);
  void show();
  std::string facts_json(const report::Progress& progress) const;

  // ---- run_end.cpp
  bool lead_at_end();  // false: another member ends the run, exit_code_ is what it said
  void finish();
  void test(report::Outcome& outcome);
  void fail(const Error& error);
  void write_report(report::Outcome& outcome);

  StateFacts facts() const {
    return {data_->info().digest, resolved_yaml_,          engine_->replica(0).identity(),
            window_.sums,         evaluation_window_.sums, elapsed()};
  }
  bool due(const std::optional<int64_t>& every) const {
    return every && *every > 0 && state().step.value % *every == 0;
  }
  bool decides() const { return !members_ || members_->lead(); }
  TrainingState& state() const { return engine_->state(); }
  double now() const { return clock_.monotonic_seconds() - began_; }  // of this attempt
  double elapsed() const { return before_ + now(); }                  // of the run, over all its attempts

  const RunOptions& options_;
  Disk& disk_;
  Clock& clock_;
  double started_, began_, before_ = 0;
  std::optional<checkpoint::RunLock> lock_;
  std::unique_ptr<data::Dataset> data_;
  std::unique_ptr<data::Prefetcher> prefetcher_;
  std::unique_ptr<Reducer> own_reducer_;  // of a run alone, and of the last things after training
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Members> members_;
  std::unique_ptr<Voice> voice_;
  std::unique_ptr<checkpoint::Writer> writer_;
  std::optional<Schedule> schedule_;
  std::optional<int64_t> total_steps_;  // as far as is known: live changes of the batch move it
  Resolved resolved_;
  std::string resolved_yaml_;
  Lengths lengths_;  // by the job alone: what intervals are counted in
  std::optional<int64_t> evaluate_every_, save_every_, log_every_, budget_steps_;
  Window window_, evaluation_window_;  // since the last line of metrics.jsonl, since the last evaluation
  std::vector<ControlEntry> asked_;    // goes with the next step's note
  std::optional<checkpoint::OwnedSnapshot> pending_best_;
  std::vector<checkpoint::Damage> damaged_;  // found on the way to the checkpoint that was taken
  bool from_member_ = false;                 // the state came from another member, in the middle of training
  std::optional<Step> last_saved_;
  int64_t skipped_ = 0, told_skipped_saves_ = 0;
  int seen_stops_ = 0, seen_checkpoint_signals_ = 0;
  bool saved_to_leave_ = false;
  std::optional<double> alone_since_;  // it is to leave, and nobody is there who could go on
  double next_timed_save_ = 0, next_timed_evaluation_ = 0, next_timed_log_ = 0, next_show_ = 0;
  double rate_began_ = 0, samples_per_second_ = 0;
  int64_t rate_samples_ = 0;
  std::string stop_status_ = "done", stop_reason_;
  std::string told_trouble_;
  int exit_code_ = 0;
  RunResult result_;
};

}  // namespace sinew::train
