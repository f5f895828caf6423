// Begins a run: data, model and state, from step 0, a checkpoint, given weights or another member.
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "rundir/rundir.h"
#include "train/one_run.h"

namespace sinew::train {
namespace {

int terminal_columns() {
  const char* columns = std::getenv("COLUMNS");
  return columns != nullptr && std::atoi(columns) > 20 ? std::atoi(columns) : 100;
}

}  // namespace

void Run::open() {
  if (!options_.join) {  // with several workers their supervisor holds the lock
    auto lock = rundir::RunLock::take(options_.run_directory);
    if (!lock)
      throw Error("RUN_IN_USE", lock.error(), "wait for that process to end, stop it, or use another --run-dir");
    lock_ = std::move(*lock);
  }
  data_ = open_data(options_.job);
  Machine machine = this_machine();
  machine.cores = std::max<int64_t>(1, machine.cores / std::max<int64_t>(1, options_.workers_here));
  resolved_ = resolve(options_.job, data_->info(), machine);
  resolved_.written.tune = {};  // training does not use it
  resolved_yaml_ = spec::to_yaml(resolved_.written, resolved_.reasons);
  write_durably(disk_, rundir::file_in(options_.run_directory, rundir::kResolvedFile), resolved_yaml_);
  write_durably(disk_, rundir::file_in(options_.run_directory, rundir::kEnvironmentFile), environment_json(machine));

  const spec::Job& job = resolved_.job;
  lengths_ = lengths_of(job, data_->info().train_size, data_->info().tokens_per_sample);
  evaluate_every_ = steps_of(job.trainer.eval_interval, lengths_);
  log_every_ = steps_of(job.logging.interval, lengths_);
  if (const auto interval = spec::parse_duration(job.checkpoint.interval)) save_every_ = steps_of(*interval, lengths_);
  budget_steps_ = budget_steps();

  prefetcher_ =
      std::make_unique<data::Prefetcher>(*data_, job.trainer.seed, *job.data.prefetch_threads, job.data.prefetch_bytes);
  own_reducer_ = make_local_reducer();
  engine_ = std::make_unique<Engine>(EngineOptions{.job = job,
                                                   .dataset = data_.get(),
                                                   .prefetcher = prefetcher_.get(),
                                                   .reducer = own_reducer_.get(),
                                                   .on_work = options_.on_work});
  plan_steps();
}

void Run::join() {
  const Digest parts[] = {digest_of(spec::to_yaml(resolved_.written, {})), data_->info().digest,
                          digest_of(engine_->replica(0).identity())};
  const auto machine = nlohmann::json::parse(environment_json(this_machine()));
  members_ = options_.join({to_hex(digest_of(std::span(parts))), machine.dump(), to_hex(engine_->probe())});
  engine_->set_reducer(members_->reducer());
}

// The budget and the evaluation interval may both be fractions of an epoch, each rounded to steps separately. A budget
// that is a multiple of the interval is counted in evaluations, because otherwise it could miss the last one.
std::optional<int64_t> Run::budget_steps() const {
  const auto budget = spec::parse_duration(resolved_.job.budget.training);
  if (!budget) return std::nullopt;
  const spec::Duration& interval = resolved_.job.trainer.eval_interval;
  const double evaluations = budget->amount / interval.amount;
  const bool multiple = std::abs(evaluations - std::round(evaluations)) < 1e-9 * evaluations;
  if (evaluate_every_ && budget->unit == interval.unit && multiple) return std::llround(evaluations) * *evaluate_every_;
  return steps_of(*budget, lengths_);
}

// Returns another member's state, or else the newest checkpoint if the run resumes or has several members (all of which
// may have died before), or else nothing.
std::optional<checkpoint::Loaded> Run::state_to_begin_with() {
  if (members_) {
    if (auto given = members_->take_state()) {
      from_member_ = true;
      return given;
    }
  }
  if (!options_.resume && !members_) return std::nullopt;
  const std::string root = rundir::file_in(options_.run_directory, rundir::kCheckpoints);
  checkpoint::Newest newest = checkpoint::load_newest(disk_, root);
  damaged_ = std::move(newest.damaged);
  if (!newest.loaded && !damaged_.empty()) {
    throw Error("CHECKPOINT_DAMAGED", "every checkpoint in " + root + " is damaged",
                "see what is damaged with: sinew checkpoint verify " + root);
  }
  return std::move(newest.loaded);
}

// Opens the reporter after the checkpoint is known and before the state is restored, because it cuts the files back to
// the step at which the run begins.
void Run::start_reporting(Step begins_at) {
  report::ReporterOptions options;
  options.directory = options_.run_directory;
  options.format = options_.log_format;
  options.terminal = isatty(STDOUT_FILENO) == 1 && options_.log_format == report::LogFormat::human;
  options.color = options.terminal && std::getenv("NO_COLOR") == nullptr;
  options.columns = terminal_columns();
  options.tensorboard = resolved_.job.logging.tensorboard;
  options.ledger = options_.ledger;
  if (options_.resume || members_) options.resumed_at = begins_at;
  reporter_ = std::make_unique<LeaderReporter>(options, spec::changed_options(resolved_.job), members_.get(), clock_);
}

void Run::log_start() {
  const spec::Job& job = resolved_.job;
  reporter_->say(report::Level::info, "start",
                 job.name + ": " + job.model.name + ", " + std::to_string(model::parameter_count(engine_->replica(0))) +
                     " parameters; " + std::to_string(data_->info().train_size) + " training samples, batch " +
                     std::to_string(job.trainer.batch_size) + " in " + std::to_string(engine_->shards()) +
                     " shards on " + std::to_string(engine_->lanes().count()) +
                     (members_ ? " lanes per worker; " : " lanes; ") + job.trainer.precision + " on " +
                     job.trainer.device);
  for (const std::string& remark : engine_->replica(0).remarks())
    reporter_->say(report::Level::warning, "model", job.model.file + ": " + remark);
  reporter_->say(report::Level::info, "run_directory", "run directory: " + options_.run_directory);
}

void Run::start_state(const std::optional<checkpoint::Loaded>& loaded) {
  for (const checkpoint::Damage& damage : damaged_) {
    reporter_->say(report::Level::warning, "damaged_checkpoint",
                   "checkpoint " + damage.directory + " is damaged (" + damage.file + ": " + damage.what +
                       "); an older one is used");
  }
  if (loaded) return restore_from(*loaded);
  if (options_.resume)
    reporter_->say(report::Level::info, "resume", "there is no checkpoint yet: starting from step 0");
  if (resolved_.job.model.init_from.path.empty()) return;
  const std::string said = warm_start(state(), resolved_.job.model.init_from, resolved_.job.model.reinit, disk_);
  engine_->state_replaced();
  reporter_->say(report::Level::info, "warm_start", said);
}

void Run::restore_from(const checkpoint::Loaded& loaded) {
  StateFacts saved;
  restore(state(), saved, loaded);
  if (saved.data_digest != data_->info().digest) {
    throw Error("TRAIN_DATA_CHANGED",
                "the training data has changed since this run began (digest " + to_hex(data_->info().digest) +
                    ", was " + to_hex(saved.data_digest) + ")",
                "restore the data, or start a new run with model.init_from: " + loaded.directory);
  }
  if (saved.model != engine_->replica(0).identity()) {
    throw Error("TRAIN_MODEL_CHANGED", resolved_.job.model.file + " has changed since this run began",
                "restore the file, or start a new run with model.init_from: " + loaded.directory);
  }
  plan_steps();
  window_.sums = saved.window;
  evaluation_window_.sums = saved.evaluation_window;
  before_ = saved.seconds;
  began_ = clock_.monotonic_seconds();
  engine_->state_replaced();
  if (digest(state()) != loaded.digest) {
    throw Error("TRAIN_STATE_CORRUPT",
                loaded.directory + ": the restored state does not have the digest with which it was saved",
                "please report this, because it should be impossible");
  }
  if (from_member_) return;  // the control log's entries continue unchanged
  state().control.resume_at(state().step);
  last_saved_ = state().step;
  reporter_->say(report::Level::info, "resume",
                 "resumed at step " + std::to_string(state().step.value) + " from " + loaded.directory);
}

}  // namespace sinew::train
