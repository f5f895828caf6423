// Run carries out one run, with checkpoints, evaluations, stops and resumes, alone or with other members. Its parts are
// run.cpp (the loop), run_begin.cpp, run_budget.cpp, run_save.cpp, run_show.cpp and run_end.cpp. Private to loop/.
#pragma once

#include <expected>
#include <mutex>
#include <set>

#include "base/exit_code.h"
#include "group/group.h"
#include "loop/experimenter.h"
#include "loop/judge.h"
#include "loop/leader_reporter.h"
#include "loop/loop.h"
#include "loop/outlook.h"
#include "loop/step_tracer.h"
#include "rundir/rundir.h"

namespace sinew::loop {

// Sums of the training metrics over some steps. They are saved with the state, so that a resumed run writes the same
// lines as an undisturbed one.
struct Window {
  report::Metrics sums;
  void add(const StepResult& step);
  report::Metrics means(bool classes) const;  // train/loss, train/accuracy
};

std::string text_of(const checkpoint::Damage& damage);     // "checkpoint ... is damaged (FILE: ...)"
std::string metrics_text(const report::Metrics& metrics);  // "  val/accuracy 0.9190  val/loss 0.2274"

// The energy in J that counters have measured.
struct EnergyUse {
  double before = 0;           // of earlier attempts
  double used = 0, at = 0;     // of this attempt until that second of it
  double begin = 0;            // what the counter showed when this attempt began
  double newest_watts = 0;     // the power between the last two looks at the counter
  std::mutex mutex;            // during an evaluation, guards what read_energy() writes
  bool told_of_still = false;  // the user got the warning that the counter stands still
};

// What the control entries of a step ask for after it.
struct DueActions {
  bool evaluation = false, checkpoint = false;
};

struct Measured {
  Step step;
  EvaluationResult result;
};

class Run {
 public:
  Run(const Plan& plan, const RunOptions& options, Trainer& trainer, Members* members, WriteFence& disk, Clock& clock);
  // Throws MemoryChanged if the run has one worker and must go back to the newest checkpoint. This object is then of no
  // further use, and going_back() counts this time, too.
  RunResult train();
  const GoingBack& going_back() const { return going_back_; }

 private:
  // ---- run_begin.cpp
  void count_intervals();
  std::optional<checkpoint::Loaded> state_to_begin_with();
  checkpoint::Newest newest_checkpoint(const std::string& root);
  void take_over_early();
  std::string check_job(const checkpoint::Loaded& loaded) const;
  void warn_of_other_environment();
  void keep_decisions();
  void remove_earlier_report();
  void start_reporting(Step begins_at);
  void start_state(const std::optional<checkpoint::Loaded>& loaded);
  void restore_from(const checkpoint::Loaded& loaded);
  bool is_wanted_end(const rundir::OptionChange& change) const;
  void change_end(const std::string& job_before);
  void log_start();

  // ---- run.cpp
  void loop();
  void plan_steps();  // computes the number of steps and the learning rate schedule
  bool advance();     // runs one step and everything around it; false: training is over
  DueActions apply_entries();
  void take_requests();
  void say_unfinished(const std::string& why);  // of an experiment
  spec::Duration save_interval() const;
  bool saves_at(Step step) const;                         // all members must agree
  void warn_of_missing(const report::Metrics& metrics);   // warns once for each metric
  void log_wrong(const std::vector<std::string>& wrong);  // workers that computed a wrong result
  void log_skipped(const SkippedSamples& skipped, const std::string& where);
  void log_left_out(const SkippedSamples& left_out, const std::vector<std::string>& damaged_copies);
  void one_step();
  double learning_rate() const;  // the learning rate of this step, as this member computes it
  StepResult compute_step(bool want_norm);
  void poll();
  void look_at_place();
  void check_place() const;
  bool may_write() const;  // any thread
  void poll_signals();
  void poll_leaving();
  void poll_clock();
  bool accepts(const ControlEntry& entry);  // logs the reason if not
  void request(ControlEntry::Kind kind, double value, const std::string& reason, int64_t number = 0);
  void report_work(Work::Kind kind);  // the step thread's work between two steps
  void enter(Stage stage) {
    if (options_.stages != nullptr) options_.stages->enter_all(stage);
  }
  bool evaluate();  // true: the state is the best so far and is to be saved
  EvaluationResult evaluate_validation();

  // ---- run_budget.cpp
  bool asked_to_stop() const;      // by a signal that no step has seen yet; any thread
  spec::TimeLimit budget() const;  // the tightest limit of time, cost and energy
  void read_energy();
  void look_at_energy();  // about once a second; lanes of an evaluation hold energy_.mutex
  void warn_of_still_counter();
  double watts() const;         // 0: not known
  double seconds_left() const;  // of the budget; infinite without one
  void set_used(rundir::Outcome& outcome);
  double evaluation_seconds(int64_t samples) const;
  double evaluation_alone_seconds(int64_t samples) const;
  double kept_for_evaluation(int64_t samples) const;
  double save_seconds() const;
  double seconds_for_model() const;
  double end_seconds() const;
  std::optional<int64_t> last_step() const;
  bool is_evaluated_at(int64_t step) const;
  std::string why_budget_ends() const;
  double unseen_load() const;
  double evaluations_in(int64_t steps, double seconds) const;
  Range steps_and_evaluations(int64_t steps) const;
  Range seconds_to_end() const;
  int64_t expected_last_step() const;
  void take_outlook();
  void warn_of_short_budget();
  void estimate_last_step();
  std::optional<EvaluationResult> evaluate_in_time(data::Split split, double then);

  // ---- run_save.cpp
  checkpoint::Writer& writer();
  StateFacts facts() const;
  std::string mirror_of_run();
  void record_mirror();
  void save(bool best);
  void submit_pending();
  int64_t best_to_keep() const;  // how many of the best checkpoints
  void hold_best(checkpoint::OwnedSnapshot taken);
  void submit_best();
  bool is_saved(Step step) const;  // whether a checkpoint of the step is in the run directory
  void confirm(std::optional<Digest> own = std::nullopt);
  void check_confirmed(Digest own) const;
  void wait_for_disk();
  void finish_saving();
  void save_last();
  std::string save_trouble();  // why the last save failed

  // ---- run_unled.cpp
  std::string save_unled();
  std::string save_under_lock();
  std::string why_not_save() const;
  std::expected<rundir::RunLock, std::string> lock_of_unled_run();

  // ---- run_show.cpp
  void log_window(bool evaluated);
  void keep_trace(std::optional<std::string> trace);
  void keep_accounts();
  void show(bool last);
  std::string facts_json(const report::Progress& progress) const;

  // ---- run_end.cpp
  bool leads_at_end();  // false: another member ended the run and set exit_code_
  void finish();
  std::string options_to_go_on() const;
  void restore_best();
  std::optional<checkpoint::Loaded> best_checkpoint();
  void with_lease(const std::function<void()>& work);
  void change_files(const std::function<void(Disk&)>& work);
  rundir::Outcome outcome_so_far();  // the fields of report.json that are a function of the state
  void set_best(const EvaluationState& evaluation, rundir::Outcome& outcome) const;
  void validate_last(rundir::Outcome& outcome);
  void test(rundir::Outcome& outcome);
  void fail(const Error& error);
  RunResult members_differ(const group::MembersDiffer& differ);
  void wait_for_leader();
  void memory_changed(const MemoryChanged& changed);
  RunResult end_going_back();
  void keep_evaluation(data::Split split, Step step, const EvaluationResult& result);
  void keep_validation();
  void write_page(const rundir::Outcome& outcome);
  bool write_report(rundir::Outcome& outcome);

  bool due(const std::optional<int64_t>& every) const {
    return every && *every > 0 && state().step.value % *every == 0;
  }
  bool is_leader() const { return !members_ || members_->is_leader(); }
  State& state() const { return trainer_.state(); }
  double epochs() const;  // passes over the training data, the current one in part; drop_last shortens each pass
  double now() const { return clock_.monotonic_seconds() - began_; }  // seconds of this attempt
  double elapsed() const { return before_ + now(); }  // seconds that the run has trained, over all its attempts

  const Plan& plan_;
  const RunOptions& options_;
  Trainer& trainer_;
  Members* members_;  // null if the run has one worker
  WriteFence& disk_;
  Clock& clock_;
  double began_, before_ = 0;
  EnergyUse energy_;
  std::unique_ptr<LeaderReporter> reporter_;
  std::unique_ptr<checkpoint::Writer> writer_;
  std::optional<Schedule> schedule_;
  std::optional<int64_t> total_steps_;  // the current estimate: users may change the batch size
  spec::Duration job_save_interval_;    // the amount is 0 if the job does not save at an interval
  Lengths lengths_;  // the lengths that the job defines, without the changes of users; they convert intervals to steps
  std::optional<int64_t> evaluate_every_, log_every_, budget_steps_;
  // sums since the last line of metrics.jsonl, and since the last evaluation
  Window window_, evaluation_window_;
  std::vector<ControlEntry> pending_entries_;  // sent with the next step's control message
  // The best state, until it is on disk. Every member keeps it, because the leader may die before it has saved it.
  std::shared_ptr<const checkpoint::OwnedSnapshot> pending_best_;
  bool submitted_best_ = false;              // true: this member has begun to save it
  double next_best_try_ = 0;                 // when to submit it again, or to look whether the leader has saved it
  std::vector<checkpoint::Damage> damaged_;  // checkpoints that were passed over when loading one
  bool from_member_ = false;                 // true: the state came from another member, in the middle of training
  std::optional<Step> last_saved_;
  std::optional<std::pair<Step, Digest>> confirmed_;  // the newest state that all members were found to have
  int64_t skipped_ = 0, reported_skipped_saves_ = 0, rate_samples_ = 0;
  int seen_stops_ = 0, seen_checkpoint_signals_ = 0;
  bool saved_to_leave_ = false;
  std::optional<double> alone_since_;  // since when this worker wants to leave but is alone
  double last_timed_save_ = 0, last_timed_evaluation_ = 0, last_timed_log_ = 0, next_show_ = 0, next_accounts_ = 0;
  RunPace pace_;
  StepTracer tracer_;
  Experimenter experimenter_;
  std::optional<std::string> trace_;  // what is to be written to trace.json, until this member may write
  double next_budget_look_ = 0, next_estimate_ = 0, rate_began_ = 0, samples_per_second_ = 0;
  bool last_is_best_ = false;     // true: the evaluation after the last step had the best value so far
  double next_look_ = 0;          // when to look again whether the run directory is lost
  bool kept_decisions_ = false;   // true: this process has written the decisions, or has failed to
  std::optional<Step> shown_;     // the step of the newest progress that the reporter got
  report::Metrics logged_means_;  // of the newest window that was logged
  std::string stop_status_ = "done", stop_reason_;
  std::optional<Step> began_at_;        // set once the state is loaded and the group has accepted it
  std::optional<group::Fenced> unled_;  // no coordinator leads the run any more; the step is completed alone
  GoingBack going_back_;                // how often a worker that is alone went back
  bool end_is_saved_ = false;           // the last state of the run is durable
  std::string reported_trouble_;
  std::set<std::string> reported_missing_;              // metrics about which the user got a warning
  std::optional<Measured> validated_, best_validated_;  // the newest evaluation of this attempt, and the best one
  std::string unrecorded_mirror_;  // the name that the file `mirror` is to store, until this member may write
  int exit_code_ = 0;
  RunResult result_;
};

}  // namespace sinew::loop
