// Ends a run: saves everything, writes the model for serving, tests it, and writes the report.
#include "base/check.h"
#include "base/error.h"
#include "rundir/rundir.h"
#include "train/artifact.h"
#include "train/one_run.h"

namespace sinew::train {
namespace {

constexpr double kFailedSaveSeconds = 60;

}  // namespace

// All members leave the loop at the same step with the same state. The leader ends the run; the others wait until it
// has, ready to replace it.
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
  engine_->set_reducer(*own_reducer_);
  finish_saving();
  rundir::Outcome outcome = outcome_of(state(), resolved_.job, data_->info());
  const Restored restored = restore_best(*engine_, resolved_.job, options_.run_directory, disk_);
  if (!restored.message.empty()) {
    reporter_->say(restored.is_warning ? report::Level::warning : report::Level::info,
                   restored.is_warning ? "best_not_restored" : "best_restored", restored.message);
  }
  const std::string left_out =
      write_artifact(state(), resolved_.job, resolved_yaml_, data_->info(), options_.run_directory, disk_);
  if (!left_out.empty()) reporter_->say(report::Level::warning, "model_file", left_out);
  if (stop_status_ != "stopped") test(outcome);  // a worker that must stop begins no new work
  outcome.status = stop_status_;
  outcome.exit_code = exit_code_;
  write_report(outcome);
  std::string text = stop_reason_ + "; " + std::to_string(outcome.steps) + " steps, " +
                     std::to_string(outcome.samples) + " samples in " +
                     std::to_string(static_cast<int64_t>(elapsed())) + " s";
  if (outcome.objective && !outcome.objective->met) text += "; objective not met (" + outcome.objective->text + ")";
  reporter_->finish(stop_status_ == "done");
  reporter_->say(report::Level::info, "end", text + "; digest " + outcome.digest);
  reporter_->flush();
  result_ = {exit_code_, Step(outcome.steps), {}, outcome.last};
  SINEW_CHECK(from_hex(outcome.digest, result_.digest), outcome.digest);
  if (members_) members_->finished(exit_code_);
}

// Evaluates the model on data that influenced no decision.
void Run::test(rundir::Outcome& outcome) {
  if (data_->info().test_size == 0) return;
  report::Metrics metrics;
  const EvaluationResult result = engine_->evaluate(data::Split::test);
  for (const auto& [name, value] : result.metrics) metrics["test/" + name] = value;
  log_skipped(result.skipped, "in the test");
  reporter_->metrics(state().step, state().samples, metrics);
  reporter_->say(report::Level::info, "test", "test:" + metrics_text(metrics));
  outcome.last.insert(metrics.begin(), metrics.end());
}

void Run::fail(const Error& error) {
  // A worker that was cut off must not write about the run.
  if (!is_leader() || (members_ && !members_->may_write())) return;
  if (pending_best_ && writer_ && writer_->wait(kFailedSaveSeconds)) submit_pending();
  rundir::Outcome outcome = outcome_of(state(), resolved_.job, data_->info());
  outcome.status = "failed";
  outcome.exit_code = kTrainingError;
  outcome.error = error.what();
  outcome.hint = error.hint;
  reporter_->flush();
  write_report(outcome);
  reporter_->finish(false);
  if (members_) members_->finished(kTrainingError);
}

void Run::write_report(rundir::Outcome& outcome) {
  outcome.started_wall_seconds = started_;
  outcome.seconds = elapsed();
  try {
    write_durably(disk_, rundir::file_in(options_.run_directory, rundir::kOutcomeFile), rundir::outcome_json(outcome));
  } catch (const DiskError& trouble) {
    reporter_->say(report::Level::error, "report_failed", trouble.what());
  }
}

}  // namespace sinew::train
