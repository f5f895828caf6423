// Ends a run: saves everything, writes the model for serving, tests it, and writes the report.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/fenced_disk.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "base/size_text.h"
#include "loop/one_run.h"
#include "rundir/rundir.h"

namespace sinew::loop {
namespace {

constexpr double kFailedSaveSeconds = 60;
constexpr double kLeaseSeconds = 120;  // the wait for a lease; longer than a member continues without a coordinator
constexpr double kLeaseLookSeconds = 0.1;
constexpr double kReportSeconds = 0.1;  // for the page and the report, when budget.time is nearly used up
constexpr double kLeaderSeconds = 5;    // time for the leader to log why the members differ, and to end the group
constexpr double kLeaderLookSeconds = 0.01;

// The error of a run that must not go back once more.
Error went_back_too_often(const GoingBack& back) {
  return {"TRAIN_WENT_BACK_TOO_OFTEN",
          "the run went back to a checkpoint " + std::to_string(kMostGoingBack) +
              " times without a newer one in between, and would have to do so again: " + back.why,
          "test the memory and the processor of the machines that log.jsonl names, and run sinew resume without them"};
}

// Returns a sentence if this worker used more memory than its part of budget.memory, else "". That budget decides how
// steps are computed, and trials measured what they need; what a training does after hours may still need more.
std::string over_memory(int64_t budget, const rundir::Outcome& outcome) {
  if (budget == 0 || !outcome.resources || outcome.resources->peak_memory_bytes <= budget) return "";
  return "this worker used " + size_text(outcome.resources->peak_memory_bytes) + " of memory, more than the " +
         size_text(budget) + " that budget.memory allows it";
}

}  // namespace

MemoryChanged::MemoryChanged(const std::string& what)
    : Error("TRAIN_MEMORY_CHANGED", what, "test the memory and the processor of this machine") {}

// Returns false if another member ended the run. All members leave the loop at the same step with the same state. The
// leader then ends the run, and the others wait for that. If the leader dies, one of them replaces it.
bool Run::leads_at_end() {
  while (members_ && !members_->is_leader()) {
    if (const auto said = members_->wait_for_end()) {
      exit_code_ = *said;
      return false;
    }
  }
  return true;
}

void Run::finish() {
  trainer_.leave_group();
  read_energy();  // a run that took under a second has no power yet
  finish_saving();
  end_is_saved_ = true;
  const Digest own = trainer_.digest();
  check_confirmed(own);
  enter(Stage::finish);
  rundir::Outcome outcome = outcome_so_far();
  const std::string options = options_to_go_on();
  validate_last(outcome);
  restore_best();
  // A worker that must stop begins no new work. Its model has no threshold until the run is resumed.
  const bool has_time = seconds_left() >= evaluation_alone_seconds(plan_.data.val_size);
  const std::string threshold = trainer_.choose_threshold(stop_status_ != "stopped" && has_time);
  if (!threshold.empty()) reporter_->say(report::Level::info, "threshold", threshold);
  if (threshold.empty() && !has_time && plan_.job.threshold.given())
    reporter_->say(report::Level::warning, "no_threshold",
                   budget().option + " left no time to choose the threshold, so the more probable class counts");
  enter(Stage::finish);  // the evaluation that chose the threshold is over
  std::string left_out;
  change_files([&](Disk& disk) {
    if (!kept_decisions_) write_decisions(disk, options_.run_directory, plan_);
    left_out = trainer_.write_artifact(disk);
  });
  if (!left_out.empty()) reporter_->say(report::Level::warning, "model_file", left_out);
  keep_validation();
  if (stop_status_ != "stopped") test(outcome);  // a worker that must stop begins no new work
  enter(Stage::finish);
  outcome.status = stop_status_;
  outcome.exit_code = exit_code_;
  if (!write_report(outcome)) exit_code_ = kTrainingError;
  std::string text = stop_reason_ + "; " + std::to_string(outcome.steps) + " steps, " +
                     std::to_string(outcome.samples) + " samples in " +
                     std::to_string(static_cast<int64_t>(elapsed())) + " s";
  if (outcome.cost) text += "; cost " + rounded_text(*outcome.cost, 4);
  if (outcome.kilowatt_hours) text += "; " + rounded_text(*outcome.kilowatt_hours, 4) + " kWh";
  if (outcome.objective && !outcome.objective->met) text += "; objective not met (" + outcome.objective->text + ")";
  reporter_->finish(stop_status_ == "done");
  if (const std::string lost = reporter_->trouble(); !lost.empty())
    reporter_->say(report::Level::error, "records_lost", "records of this run are not in its files: " + lost);
  reporter_->say(report::Level::info, "end", text + "; digest " + outcome.digest);
  const std::string workers =
      members_ && options_.workers_here > 1 ? " --workers " + std::to_string(options_.workers_here) : "";
  if (!options.empty() || stop_status_ == "stopped")
    reporter_->say(report::Level::info, "go_on",
                   "to go on: sinew resume " + shell_quoted(options_.run_directory) + workers + options);
  reporter_->flush();
  result_ = {.exit_code = exit_code_,
             .step = Step(outcome.steps),
             .last = outcome.last,
             .steps = pace_.steps(),
             .evaluations = pace_.evaluations(),
             .save_seconds = writer_ ? writer_->status().save_seconds : 0};
  SINEW_CHECK(from_hex(outcome.digest, result_.digest), outcome.digest);
  if (members_) members_->finished(exit_code_);
}

// Returns the options with which `sinew resume` would train longer, as a part of a command line. Returns "" if the run
// needs none, and also if its user has just seen it train to its end: only a resume that had nothing to do wants them.
std::string Run::options_to_go_on() const {
  const spec::Job& job = plan_.job;
  const auto twice = [](spec::Duration duration) {
    duration.amount *= 2;
    return to_string(duration);
  };
  if (stop_status_ == "budget") {
    const auto training = spec::parse_duration(job.budget.training);
    if (training && budget_steps_ && state().step.value >= *budget_steps_)
      return state().step.value < 2 * *budget_steps_ ? " budget.training=" + twice(*training) : "";
    const spec::TimeLimit limit = budget();
    const double used = std::ceil(std::max(limit.seconds, elapsed()));
    return " " + spec::budget_setting(limit.option, job.budget, 2 * used, watts());
  }
  if (stop_status_ != "done" || !options_.resume || state().step != began_at_) return "";
  if (state().evaluation.objective_met) return "";
  if (!state().evaluation.stop.empty())
    return " early_stopping.patience=" + std::to_string(2 * state().evaluation.patience.without_improvement);
  if (total_steps_ && state().step.value >= 2 * *total_steps_) return "";  // twice as long is still over
  return " trainer.max_duration=" + twice(job.trainer.max_duration);
}

// Does work that a member may do only while it holds the lease, because the others may have continued without it.
// `work` throws MayNotWrite if the lease expired during it. The member then waits for the next lease and does all of
// the work again. Every other error is final. Throws Error if the member gets no lease in time.
void Run::with_lease(const std::function<void()>& work) {
  if (!members_) {
    try {
      return work();
    } catch (const Error&) {
      check_place();  // a lost directory is the cause of every error
      throw;
    }
  }
  const double ends = clock_.monotonic_seconds() + kLeaseSeconds;
  for (;;) {
    check_place();
    members_->check_membership();
    disk_.check();
    if (members_->may_write()) {
      try {
        return work();
      } catch (const MayNotWrite&) {
      }
    }
    if (clock_.monotonic_seconds() >= ends)
      throw Error("TRAIN_SAVE_FAILED",
                  "the end of the run is not saved: for " + std::to_string(static_cast<int>(kLeaseSeconds)) +
                      " s no coordinator has confirmed that this worker may write",
                  "check that the coordinator of the run lives, and run sinew resume");
    clock_.sleep_seconds(kLeaseLookSeconds);
  }
}

// Does work that changes files of the run.
void Run::change_files(const std::function<void(Disk&)>& work) {
  FencedDisk fenced(disk_, [this] { return may_write(); });
  with_lease([&] { work(fenced); });
}

// If early_stopping.restore_best is set and the state is not that of the best step, loads the best checkpoint. Throws
// Error if there is one and it cannot be used.
void Run::restore_best() {
  const EvaluationState evaluation = state().evaluation;
  const spec::EarlyStoppingOptions& early = plan_.job.early_stopping;
  if (!evaluation.best || evaluation.best_step == state().step || last_is_best_) return;
  if (early.monitor.empty() || !early.restore_best) {
    if (plan_.data.val_size > 0)
      reporter_->say(report::Level::info, "model",
                     "the model is that of step " + std::to_string(state().step.value) + ", the last; " +
                         plan_.job.checkpoint.monitor + " was best at step " +
                         std::to_string(evaluation.best_step.value) + " (" + rounded_text(*evaluation.best, 4) +
                         "). To get the best one, train with " +
                         (early.monitor.empty() ? "early_stopping.monitor=" + plan_.job.checkpoint.monitor
                                                : std::string("early_stopping.restore_best=true")));
    return;
  }
  const std::string lost = "no checkpoint has the best state, of step " + std::to_string(evaluation.best_step.value) +
                           "; the model is that of step ";
  const auto loaded = best_checkpoint();
  if (!loaded)
    return reporter_->say(report::Level::warning, "best_not_restored",
                          lost + std::to_string(state().step.value) + ", the last");
  trainer_.restore(*loaded);
  if (trainer_.digest() != loaded->digest)
    throw MemoryChanged("the restored state of step " + std::to_string(loaded->step.value) +
                        " does not have the digest with which it was saved");
  const std::string step = std::to_string(loaded->step.value);
  if (loaded->step != evaluation.best_step)
    return reporter_->say(report::Level::warning, "best_not_restored", lost + step + ", the best before it");
  reporter_->say(report::Level::info, "best_restored", "the model is that of step " + step + ", the best");
}

// Returns the newest intact checkpoint of a step that was the best when it was reached. Returns nullopt if none of
// these steps has a checkpoint. Throws Error if all of them are damaged.
std::optional<checkpoint::Loaded> Run::best_checkpoint() {
  const std::vector<Step>& best = state().evaluation.best_steps;
  const std::string root = rundir::file_in(options_.run_directory, rundir::kCheckpoints);
  std::optional<checkpoint::Damage> damage;
  std::vector<std::string> present = checkpoint::list(disk_, root);
  std::ranges::reverse(present);
  for (const std::string& directory : present) {
    if (std::ranges::find(best, checkpoint::step_of(directory)) == best.end()) continue;
    auto loaded = checkpoint::load(disk_, directory);
    if (loaded) return std::move(*loaded);
    reporter_->say(report::Level::warning, "damaged_checkpoint", text_of(loaded.error()));
    if (!damage) damage = std::move(loaded.error());
  }
  if (!damage) return std::nullopt;
  throw Error("CHECKPOINT_DAMAGED", "the best " + text_of(*damage) + ", and no best one before it can be used",
              "the last checkpoint is in " + root + "/last");
}

rundir::Outcome Run::outcome_so_far() {
  rundir::Outcome outcome;
  outcome.job = plan_.job.name;
  outcome.steps = state().step.value;
  outcome.samples = state().samples;
  outcome.epochs = epochs();
  outcome.digest = to_hex(trainer_.digest());
  const EvaluationState& evaluation = state().evaluation;
  outcome.last = evaluation.last;
  set_best(evaluation, outcome);
  outcome.forecasts = forecasts_of(state().outlook);
  if (plan_.job.objective) {
    const auto found = evaluation.last.find(plan_.job.objective->metric);
    outcome.objective = {to_string(*plan_.job.objective), evaluation.objective_met,
                         found == evaluation.last.end() ? std::nan("") : found->second};
  }
  return outcome;
}

void Run::set_best(const EvaluationState& evaluation, rundir::Outcome& outcome) const {
  if (evaluation.best) outcome.best = {plan_.job.checkpoint.monitor, *evaluation.best, evaluation.best_step.value};
}

// A budget may end the training long after the last evaluation. Then the last state is evaluated here, so that it
// can be the best one. This decides only which model the run ends with and is no part of the state: a run that goes on
// with a larger budget must decide as one that never ended. So metrics.jsonl does not get the result either. Without
// this evaluation the run still has a model, so an error of it is a warning.
void Run::validate_last(rundir::Outcome& outcome) {
  const bool trained = began_at_ && state().step != *began_at_;
  const bool ended_by_time = stop_status_ == "budget" && !(budget_steps_ && state().step.value >= *budget_steps_);
  if (!trained || !ended_by_time || plan_.data.val_size == 0) return;
  if (validated_ && validated_->step == state().step) return;
  std::optional<EvaluationResult> result;
  std::string why = budget().option + " left no time for it";
  try {
    result = evaluate_in_time(data::Split::val, seconds_for_model() + kReportSeconds);
  } catch (const ShardFailed& error) {
    why = error.what();
  }
  enter(Stage::finish);
  if (!result)
    return reporter_->say(report::Level::warning, "not_validated",
                          "the last step was not evaluated on the validation data: " + why);
  report::Metrics metrics = evaluation_window_.means(plan_.data.task != data::Task::regression);
  for (const auto& [name, value] : result->metrics) metrics["val/" + name] = value;
  log_skipped(result->skipped, "in the evaluation of the last step");
  log_left_out(result->left_out, result->damaged_copies);
  const Judgement verdict = judge(state().evaluation, state().step, metrics, plan_.job);
  last_is_best_ = verdict.improved;
  validated_ = Measured{state().step, *result};
  if (verdict.improved) best_validated_ = validated_;
  reporter_->say(report::Level::info, "evaluation",
                 "step " + std::to_string(state().step.value) + ", the last:" + metrics_text(metrics) +
                     (verdict.improved ? "  (best)" : ""),
                 metrics);
  outcome.last = verdict.state.last;
  if (const auto value = metrics.find(state().outlook.metric); outcome.forecasts && value != metrics.end()) {
    if (report::improves(value->second, outcome.forecasts->best, report::monitored_metric(plan_.job).lower, 0)) {
      outcome.forecasts->best = value->second;
      outcome.forecasts->best_step = state().step.value;
    }
  }
  set_best(verdict.state, outcome);
}

// Evaluates the model on data that influenced no decision.
void Run::test(rundir::Outcome& outcome) {
  if (plan_.data.test_size == 0) return;
  report::Metrics metrics;
  const auto evaluated = evaluate_in_time(data::Split::test, kReportSeconds);
  if (!evaluated)
    return reporter_->say(report::Level::warning, "not_tested",
                          "the model was not tested, because " +
                              (asked_to_stop() ? "a signal asked to stop" : budget().option + " left no time for it") +
                              "; to test it: sinew eval " + shell_quoted(options_.run_directory));
  const EvaluationResult& result = *evaluated;
  for (const auto& [name, value] : result.metrics) metrics["test/" + name] = value;
  log_skipped(result.skipped, "in the test");
  reporter_->metrics(state().step, state().samples, metrics);
  reporter_->say(report::Level::info, "test", "test:" + metrics_text(metrics), metrics);
  outcome.last.insert(metrics.begin(), metrics.end());
  keep_evaluation(data::Split::test, state().step, result);
}

// Keeps what the validation measured about the model. The evaluation may be missing: an attempt that goes on from a
// checkpoint and ends before its first evaluation has made none.
void Run::keep_validation() {
  for (const auto& measured : {validated_, best_validated_}) {
    if (measured && measured->step == state().step)
      return keep_evaluation(data::Split::val, measured->step, measured->result);
  }
}

// Writes the result of an evaluation of classes as `sinew eval` does. Other results are in report.json as a whole.
void Run::keep_evaluation(data::Split split, Step step, const EvaluationResult& result) {
  if (result.confusion.empty()) return;
  const std::string model = rundir::file_in(options_.run_directory, rundir::kModel);
  const report::EvaluationRecord record{.part = data::to_string(split),
                                        .weights = rundir::file_in(model, "model.safetensors"),
                                        .step = step.value,
                                        .data = {},
                                        .samples = result.samples,
                                        .skipped = result.skipped.count,
                                        .classes = plan_.data.classes,
                                        .metrics = result.metrics,
                                        .class_names = plan_.data.class_names,
                                        .confusion = result.confusion,
                                        .thresholds = result.thresholds,
                                        .threshold = result.threshold};
  try {
    const std::string path = rundir::file_in(options_.run_directory, rundir::evaluation_file(record.part));
    change_files([&](Disk& disk) { write_durably(disk, path, report::evaluation_json(record)); });
  } catch (const DiskError& trouble) {
    reporter_->say(report::Level::warning, "evaluation_file", trouble.what());
  }
}

void Run::fail(const Error& error) {
  // A worker that was cut off must not write about the run.
  if (!is_leader() || !may_write()) return;
  if (pending_best_ && writer_ && writer_->wait(kFailedSaveSeconds)) submit_pending();
  rundir::Outcome outcome = outcome_so_far();
  rundir::set_failed(outcome, error.what(), error.hint);
  reporter_->flush();
  write_report(outcome);
  reporter_->finish(false);
  if (members_) members_->finished(kTrainingError);
}

// All members get this error at the same collective. If most of them have the same state, the group goes back to the
// newest checkpoint, at which all had the same state: the members compare their states before each checkpoint.
// Otherwise nobody can tell which state is right, and the run ends.
RunResult Run::members_differ(const group::MembersDiffer& differ) {
  if (!differ.outvoted.empty()) {
    reporter_->say(report::Level::error, "members_differ",
                   std::string(differ.what()) + "; all members go back to the newest checkpoint. " + differ.hint);
    reporter_->flush();
    wait_for_leader();
    members_->dissolve(differ.what());
  }
  if (!leads_at_end()) return {.exit_code = exit_code_, .step = state().step};
  reporter_->say(report::Level::error, "members_differ", differ.what());
  fail(differ);
  throw differ;
}

// The leader writes the log. Once another member has ended the group, the leader may write nothing any more. So the
// other members give it time to end the group itself, after which check_membership throws.
void Run::wait_for_leader() {
  const double end = clock_.monotonic_seconds() + kLeaderSeconds;
  while (!is_leader() && clock_.monotonic_seconds() < end) {
    members_->check_membership();
    clock_.sleep_seconds(kLeaderLookSeconds);
  }
}

// Throws Error if a worker that is alone cannot go back because there is no checkpoint, or because it went back too
// often already. The next group decides for itself (end_going_back).
void Run::memory_changed(const MemoryChanged& changed) {
  reporter_->say(report::Level::error, "memory_changed",
                 std::string(changed.what()) + "; the run goes back to the newest checkpoint. " + changed.hint);
  reporter_->flush();
  if (members_) members_->dissolve(changed.what());
  const std::string root = rundir::file_in(options_.run_directory, rundir::kCheckpoints);
  writer_.reset();  // waits for the checkpoint that is being written
  pending_best_.reset();
  const std::vector<std::string> present = checkpoint::list(disk_, root);
  if (!present.empty()) {
    going_back_ = going_back_.once_more(checkpoint::step_of(present.back()).value, changed.what());
    if (!going_back_.too_often()) return;
  }
  const Error error =
      present.empty()
          ? Error(changed.code, std::string(changed.what()) + "; there is no checkpoint to go back to", changed.hint)
          : went_back_too_often(going_back_);
  fail(error);
  throw Error(error);
}

// All members of the group begin with the same count. Their leader ends the run.
RunResult Run::end_going_back() {
  if (!leads_at_end()) return {.exit_code = exit_code_, .step = state().step};
  with_lease([] {});  // without a lease, fail() writes nothing
  throw went_back_too_often(members_->going_back());
}

// Writes the page before the report, which is the last file of a run. A page is never worth a run: without it, there is
// a warning.
void Run::write_page(const rundir::Outcome& outcome) {
  if (!options_.page) return;
  const auto warn = [&](const std::exception& why) {
    reporter_->say(report::Level::warning, "page_failed", std::string("the run has no report.html: ") + why.what());
  };
  reporter_->flush();
  std::string page;
  try {
    page = options_.page(outcome);
  } catch (const std::exception& trouble) {
    return warn(trouble);
  }
  if (page.empty()) return;
  try {
    const std::string path = rundir::file_in(options_.run_directory, rundir::kRunPageFile);
    change_files([&](Disk& disk) { write_durably(disk, path, page); });
  } catch (const DiskError& trouble) {
    warn(trouble);
  }
}

// Returns false if the disk did not take the report.
bool Run::write_report(rundir::Outcome& outcome) {
  outcome.started_wall_seconds = options_.began.wall_seconds;
  outcome.seconds = elapsed();
  outcome.experiments = experimenter_.results();
  if (options_.accounts != nullptr) options_.accounts->add_to(outcome);
  if (const std::string text =
          over_memory(plan_.job.budget.memory / std::max<int64_t>(1, options_.workers_here), outcome);
      !text.empty())
    reporter_->say(report::Level::warning, "memory_over_budget", text);
  set_used(outcome);
  write_page(outcome);
  try {
    const std::string path = rundir::file_in(options_.run_directory, rundir::kOutcomeFile);
    change_files([&](Disk& disk) {
      write_durably(disk, path, rundir::outcome_json(outcome));
      rundir::remove_accounts(disk, options_.run_directory);
    });
    return true;
  } catch (const DiskError& trouble) {
    reporter_->say(report::Level::error, "report_failed",
                   std::string(trouble.what()) +
                       "; the run has not ended without its report; to end it: sinew resume " +
                       shell_quoted(options_.run_directory));
    return false;
  }
}

}  // namespace sinew::loop
