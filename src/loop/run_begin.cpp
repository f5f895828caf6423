// Begins a run: from step 0, a checkpoint, given weights or another member.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fenced_disk.h"
#include "loop/one_run.h"
#include "rundir/rundir.h"

namespace sinew::loop {
namespace {

constexpr int kMostReads = 10;  // how often a member reads the checkpoints if other members replace them meanwhile

}  // namespace

void Run::count_intervals() {
  const spec::Job& job = plan_.job;
  lengths_ = lengths_of(job, plan_.data.train_size, plan_.data.tokens_per_sample);
  evaluate_every_ = steps_of(job.trainer.eval_interval, lengths_);
  log_every_ = steps_of(job.logging.interval, lengths_);
  budget_steps_ = budget_steps(job, lengths_);
  job_save_interval_ =
      spec::parse_duration(job.checkpoint.interval).value_or(spec::Duration{0, spec::Duration::Unit::steps});
}

// A member may be suspended while it reads. Meanwhile the others may have saved newer checkpoints and deleted those
// that it reads, which then seem damaged. If a checkpoint seems damaged and the directory has other checkpoints now,
// the member reads again.
checkpoint::Newest Run::newest_checkpoint(const std::string& root) {
  for (int reads = 1;; ++reads) {
    const std::vector<std::string> present = checkpoint::list(disk_, root);
    checkpoint::Newest newest = checkpoint::load_newest(disk_, root);
    if (newest.damaged.empty() || reads == kMostReads || checkpoint::list(disk_, root) == present) return newest;
  }
}

// Returns another member's state if there is one. Otherwise returns the newest checkpoint if the run resumes, or if it
// has several members, because all of them may have died before. Otherwise returns nullopt.
std::optional<checkpoint::Loaded> Run::state_to_begin_with() {
  if (members_) {
    if (auto given = members_->take_state()) {
      from_member_ = true;
      return given;
    }
  }
  if (!options_.resume && !members_) return std::nullopt;
  take_over_early();
  const std::string root = rundir::file_in(options_.run_directory, rundir::kCheckpoints);
  checkpoint::Newest newest = newest_checkpoint(root);
  damaged_ = std::move(newest.damaged);
  if (!newest.loaded && !damaged_.empty()) {
    throw Error("CHECKPOINT_DAMAGED", "every checkpoint in " + root + " is damaged",
                "see what is damaged with: sinew checkpoint verify " + root);
  }
  return std::move(newest.loaded);
}

// A former leader that was suspended may save another checkpoint when it continues. So the new leader takes over before
// it reads the checkpoints, if it may write already. If this fails, the reporter tries again, and says why.
void Run::take_over_early() {
  if (!is_leader() || !may_write()) return;
  try {
    disk_.take_over();
  } catch (const WriterReplaced&) {
    throw;
  } catch (const Error&) {
  }
}

// Refuses a state that was computed with other options. Otherwise a digit that changed in resolved.yaml would silently
// change the training. A member of a population begins with the state of another trial, whose options differ on
// purpose. Returns a sentence about allowed changes, for the log, or "".
std::string Run::check_job(const checkpoint::Loaded& loaded) const {
  const auto document = nlohmann::json::parse(loaded.state_json, nullptr, /*allow_exceptions=*/false);
  const auto job = document.is_object() ? document.find("job") : document.end();
  if (!document.is_object() || job == document.end() || !job->is_string()) return "";  // restoring it names the damage
  std::vector<rundir::OptionChange> changes = rundir::job_changes(job->get<std::string>(), plan_.resolved_yaml);
  if (changes.empty()) return "";
  const std::string carried =
      rundir::file_in(rundir::file_in(options_.run_directory, rundir::kCheckpoints), rundir::kCarriedFile);
  const std::string name = loaded.directory.substr(loaded.directory.rfind('/') + 1);
  const bool of_another = disk_.exists(carried) && read_text(disk_, carried) == name + "\n";
  // A member's state is in the middle of training, and all members have one end.
  if (!from_member_) std::erase_if(changes, [&](const rundir::OptionChange& change) { return is_wanted_end(change); });
  if (changes.empty()) return "";  // change_end() tells the user
  if (of_another || !rundir::changes_result(changes))
    return "options that differ from those of " + loaded.directory + ": " + to_string(changes);
  throw Error(
      "RUN_JOB_CHANGED",
      "the state of step " + std::to_string(loaded.step.value) + " in " + loaded.directory +
          " was trained with other options: " + to_string(changes),
      "to continue, set these options back in " + rundir::file_in(options_.run_directory, rundir::kResolvedFile) +
          "; to train with the new ones, start a run in another --run-dir with model.init_from: " + loaded.directory +
          "; sinew resume RUN trainer.max_duration=... trains longer, and sinew control changes the learning rate or "
          "the batch size of a running run");
}

void write_decisions(Disk& disk, const std::string& run_directory, const Plan& plan) {
  const auto kept = [&](const std::string& path, const auto& same) {
    try {
      return disk.exists(path) && same(read_text(disk, path));
    } catch (const Error&) {  // not readable, or no list of options: it is written again
      return false;
    }
  };
  // A directory with a resolved.yaml is a run, so this file comes last.
  const std::string environment = rundir::file_in(run_directory, rundir::kEnvironmentFile);
  const std::string resolved = rundir::file_in(run_directory, rundir::kResolvedFile);
  if (!plan.environment.empty() &&
      !kept(environment, [&](const std::string& text) { return text == plan.environment; }))
    write_durably(disk, environment, plan.environment);
  if (!kept(resolved, [&](const std::string& text) { return rundir::job_changes(text, plan.resolved_yaml).empty(); }))
    write_durably(disk, resolved, plan.resolved_yaml);
}

// A run that goes on elsewhere is no error: it may have no other place. But its bits may be others from here on.
void Run::warn_of_other_environment() {
  const std::string path = rundir::file_in(options_.run_directory, rundir::kEnvironmentFile);
  if (!options_.resume || plan_.environment.empty() || !disk_.exists(path)) return;
  std::string changes;
  try {
    changes = rundir::environment_changes(read_text(disk_, path), plan_.environment);
  } catch (const DiskError&) {  // write_decisions() writes it again
  }
  if (changes.empty()) return;
  reporter_->say(
      report::Level::warning, "environment_changed",
      "the run goes on with another processor or other libraries, so its steps may differ in their last bits "
      "from those of an undisturbed run: " +
          changes);
}

// Does not wait for the lease: look_at_place() calls this function again.
void Run::keep_decisions() {
  if (kept_decisions_ || !is_leader()) return;
  FencedDisk fenced(disk_, [this] { return may_write(); });
  try {
    fenced.check_may_write();
    warn_of_other_environment();
    write_decisions(fenced, options_.run_directory, plan_);
    kept_decisions_ = true;
  } catch (const MayNotWrite&) {
  } catch (const DiskError& trouble) {
    kept_decisions_ = true;  // the warning is given only once
    reporter_->say(report::Level::warning, "decisions", std::string(trouble.what()) + "; training continues");
  }
}

// Removes the report and the page of an earlier attempt. Only the leader does this, and only while it holds the lease.
// Otherwise it could delete the new report of members that have continued without it and ended the run. Does not wait
// for a lease if there is no report.
void Run::remove_earlier_report() {
  const std::string report = rundir::file_in(options_.run_directory, rundir::kOutcomeFile);
  const std::string page = rundir::file_in(options_.run_directory, rundir::kRunPageFile);
  if (disk_.exists(report)) change_files([&](Disk& disk) { disk.remove_file(report); });
  const std::string accounts = rundir::file_in(options_.run_directory, rundir::kAccountsFile);
  if (disk_.exists(accounts)) change_files([&](Disk& disk) { rundir::remove_accounts(disk, options_.run_directory); });
  try {
    if (disk_.exists(page)) change_files([&](Disk& disk) { disk.remove_file(page); });
  } catch (const DiskError&) {  // a page is never worth a run
  }
}

// Must be called once the step at which the run begins is known, because the reporter truncates the files to that step.
// It must be called before the state is restored, because restoring reports messages.
void Run::start_reporting(Step begins_at) {
  report::ReporterOptions options = options_.screen;
  options.directory = options_.run_directory;
  options.tensorboard = plan_.job.logging.tensorboard;
  options.ledger = options_.ledger;
  if (options_.resume || members_) options.resumed_at = begins_at;
  if (options_.place_lost) options.may_write = [this] { return options_.place_lost().empty(); };
  reporter_ = std::make_unique<LeaderReporter>(options, spec::changed_options(plan_.job), members_, disk_, clock_);
}

void Run::log_start() {
  const spec::Job& job = plan_.job;
  reporter_->say(report::Level::info, "start",
                 job.name + ": " + job.model.name + ", " + std::to_string(plan_.parameters) + " parameters; " +
                     std::to_string(plan_.data.train_size) + " training samples, batch " +
                     std::to_string(job.trainer.batch_size) + " in " + std::to_string(plan_.shards) + " shards on " +
                     std::to_string(plan_.lanes) + (plan_.lanes == 1 ? " lane" : " lanes") +
                     (members_ ? " per worker; " : "; ") + job.trainer.precision + " on " + job.trainer.device);
  if (members_)
    reporter_->say(report::Level::info, "comparison",
                   "workers compare their states: the whole state within " + std::to_string(plan_.compared_parts) +
                       (plan_.compared_parts == 1 ? " step" : " steps") + " and before each checkpoint");
  for (const std::string& note : plan_.data.notes) reporter_->say(report::Level::info, "data", note);
  if (!plan_.data.columns.empty()) {
    for (const std::string& line : data::column_lines(plan_.data.columns))
      reporter_->say(report::Level::info, "columns", line);
  }
  for (const std::string& remark : plan_.remarks)
    reporter_->say(report::Level::warning, "model", job.model.file + ": " + remark);
  reporter_->say(report::Level::info, "run_directory", "run directory: " + options_.run_directory);
}

std::string text_of(const checkpoint::Damage& damage) {
  return "checkpoint " + damage.directory + " is damaged (" + damage.file + ": " + damage.what + ")";
}

void Run::start_state(const std::optional<checkpoint::Loaded>& loaded) {
  for (const checkpoint::Damage& damage : damaged_) {
    reporter_->say(report::Level::warning, "damaged_checkpoint", text_of(damage) + "; an older one is used");
  }
  if (loaded) return restore_from(*loaded);
  if (options_.resume)
    reporter_->say(report::Level::info, "resume", "there is no checkpoint yet: starting from step 0");
  if (plan_.job.model.init_from.path.empty()) return;
  reporter_->say(report::Level::info, "warm_start", trainer_.warm_start());
}

void Run::restore_from(const checkpoint::Loaded& loaded) {
  const StateFacts saved = trainer_.restore(loaded);
  if (saved.data_digest != plan_.data.digest) {
    throw Error(
        "TRAIN_DATA_CHANGED",
        "the training data has changed since this run began, or another version of sinew read it in another way "
        "(digest " +
            to_hex(plan_.data.digest) + ", was " + to_hex(saved.data_digest) + ")",
        "restore the data, or start a new run with model.init_from: " + loaded.directory);
  }
  if (saved.model != plan_.model) {
    const std::string &model = plan_.job.model.file, &loss = plan_.job.loss.library;
    const std::string files =
        model.empty() || loss.empty() || model == loss ? (model.empty() ? loss : model) : model + " or " + loss;
    throw Error("TRAIN_MODEL_CHANGED", files + " has changed since this run began",
                "restore the file, or start a new run with model.init_from: " + loaded.directory);
  }
  plan_steps();
  window_.sums = saved.window;
  evaluation_window_.sums = saved.evaluation_window;
  before_ = saved.seconds;
  energy_.before = saved.joules;
  if (from_member_) {  // while this worker began, the others trained
    began_ = clock_.monotonic_seconds();
    if (options_.joules) energy_.begin = options_.joules();
  }
  if (trainer_.digest() != loaded.digest) {
    // load() has compared what it read with the digest. A checkpoint of an older version does not allow that.
    throw Error("TRAIN_STATE_CORRUPT",
                loaded.directory + ": the restored state does not have the digest with which it was saved",
                from_member_ ? "test the memory of this machine and of the machines of the other workers"
                             : "test the memory of this machine, and resume the run on another one; if that fails as "
                               "well, move the directory of this checkpoint away, and an older one is used");
  }
  if (from_member_) return reporter_->adopt(saved.records);  // the control log's entries continue unchanged
  state().control.resume_at(state().step);
  last_saved_ = state().step;
  reporter_->say(report::Level::info, "resume",
                 "resumed at step " + std::to_string(state().step.value) + " from " + loaded.directory);
  change_end(saved.resolved_job);
}

bool Run::is_wanted_end(const rundir::OptionChange& change) const {
  return change.of_end && rundir::user_wanted_end(disk_, options_.run_directory, change.key, change.now);
}

// Records in the control log that the run goes on with another end than the one with which its state was saved. From
// this step on, the schedules are those of a run that had the new end from the beginning.
void Run::change_end(const std::string& job_before) {
  std::vector<rundir::OptionChange> changes = rundir::job_changes(job_before, plan_.resolved_yaml);
  std::erase_if(changes, [&](const rundir::OptionChange& change) { return !is_wanted_end(change); });
  if (changes.empty()) return;
  const auto steps = static_cast<double>(total_steps_.value_or(0));
  state().control.append({state().step, ControlEntry::Kind::max_duration, steps, to_string(changes), true, 0});
  state().evaluation = decide_end(state().evaluation, plan_.job);
  reporter_->say(report::Level::info, "new_end",
                 "the run has another end: " + to_string(changes) +
                     "; from here on, its schedules are those of a run with this end");
}

}  // namespace sinew::loop
