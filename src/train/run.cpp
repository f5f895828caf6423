// One run: from a job to a model, through checkpoints, evaluations, stops and resumes.
//
// The loop below is the only place that looks at the clock and at signals. Whatever they ask for becomes an entry of
// the control log for the next step; the entries, the evaluations and the steps are then a function of the state.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "train/artifact.h"
#include "train/engine.h"
#include "train/judge.h"
#include "train/resolve.h"
#include "train/schedule.h"
#include "train/state.h"

namespace sinew::train {
namespace {

constexpr double kFinalSaveSeconds = 600;  // how long the last checkpoint may take before the run gives up on it
constexpr int kTrainingError = 1, kBudget = 3, kResumable = 75;

void write_text(Disk& disk, const std::string& path, const std::string& text) {
  write_durably(disk, path, std::as_bytes(std::span(text.data(), text.size())));
}

std::string listed(const report::Metrics& metrics) {
  std::string line;
  for (const auto& [name, value] : metrics) {
    char text[64];
    std::snprintf(text, sizeof text, "  %s %.4f", name.c_str(), value);
    line += text;
  }
  return line;
}

int terminal_columns() {
  const char* columns = std::getenv("COLUMNS");
  return columns != nullptr && std::atoi(columns) > 20 ? std::atoi(columns) : 100;
}

// Sums of the training metrics since the last line of metrics.jsonl. Saved with the state, so that a resumed run writes
// the lines the undisturbed one would have written.
struct Window {
  report::Metrics sums;
  void add(const StepResult& step) {
    sums["loss"] += step.loss_sum;
    sums["weight"] += step.weight;
    sums["seen"] += static_cast<double>(step.seen);
    sums["correct"] += static_cast<double>(step.correct);
  }
  report::Metrics means(bool classes) const {
    report::Metrics metrics;
    const auto at = [&](const char* name) { return sums.contains(name) ? sums.at(name) : 0.0; };
    if (at("weight") > 0) metrics["train/loss"] = at("loss") / at("weight");
    if (classes && at("seen") > 0) metrics["train/accuracy"] = at("correct") / at("seen");
    return metrics;
  }
};

class Run {
 public:
  Run(const RunOptions& options, Disk& disk, Clock& clock)
      : options_(options),
        disk_(disk),
        clock_(clock),
        started_(clock.wall_seconds()),
        began_(clock.monotonic_seconds()) {}

  RunResult train();

 private:
  void open();
  void start_reporting();
  void start_state();
  void loop();
  bool obey(const std::vector<ControlEntry>& entries);
  void one_step();
  void poll();
  void request(ControlEntry::Kind kind, double value, const std::string& reason);
  bool evaluate();  // true: the best so far, to be saved
  void save(bool best);
  void submit_pending();
  void finish_saving();
  void log_window(bool evaluated);
  void show();
  void finish();
  void test(report::Outcome& outcome);
  void fail(const Error& error);
  void write_report(report::Outcome& outcome);
  StateFacts facts() const { return {data_->info().digest, resolved_yaml_, window_.sums}; }
  bool due(const std::optional<int64_t>& every) const {
    return every && *every > 0 && state().step.value % *every == 0;
  }
  TrainingState& state() const { return engine_->state(); }
  double elapsed() const { return clock_.monotonic_seconds() - began_; }

  const RunOptions& options_;
  Disk& disk_;
  Clock& clock_;
  double started_, began_;
  std::unique_ptr<data::Dataset> data_;
  std::unique_ptr<data::Prefetcher> prefetcher_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<report::Reporter> reporter_;
  std::unique_ptr<checkpoint::Writer> writer_;
  std::optional<checkpoint::RunLock> lock_;
  std::optional<Schedule> schedule_;
  Resolved resolved_;
  std::string resolved_yaml_;
  Lengths lengths_;
  std::optional<int64_t> evaluate_every_, save_every_, log_every_;
  Window window_;
  std::optional<checkpoint::OwnedSnapshot> pending_best_;
  checkpoint::Newest newest_;  // what a resume found, until the state is made of it
  std::optional<Step> resumed_at_, last_saved_;
  int64_t skipped_ = 0, told_skipped_saves_ = 0;
  int seen_stops_ = 0, seen_checkpoint_signals_ = 0;
  double next_timed_save_ = 0, next_timed_evaluation_ = 0, next_log_ = 0;
  double rate_began_ = 0, samples_per_second_ = 0;
  int64_t rate_samples_ = 0;
  std::string stop_status_, stop_reason_;
  std::string told_trouble_;
  int exit_code_ = 0;
  RunResult result_;
};

void Run::open() {
  auto lock = checkpoint::RunLock::take(options_.run_directory);
  if (!lock) throw Error(lock.error(), "wait for it to end, stop it, or use another --run-dir");
  lock_ = std::move(*lock);
  data_ = data::open_dataset(options_.job.data, options_.job.trainer.seed);
  const Machine machine = this_machine();
  resolved_ = resolve(options_.job, data_->info(), machine);
  resolved_yaml_ = spec::to_yaml(resolved_.written, resolved_.reasons);
  write_text(disk_, options_.run_directory + "/resolved.yaml", resolved_yaml_);
  write_text(disk_, options_.run_directory + "/environment.json", environment_json(machine));
  disk_.remove_file(options_.run_directory + "/report.json");

  const spec::Job& job = resolved_.job;
  lengths_ = lengths_of(job, data_->info().train_size, data_->info().tokens_per_sample);
  schedule_.emplace(job.scheduler, lengths_);
  evaluate_every_ = steps_of(job.trainer.eval_interval, lengths_);
  log_every_ = steps_of(job.logging.interval, lengths_);
  if (const auto interval = spec::parse_duration(job.checkpoint.interval)) save_every_ = steps_of(*interval, lengths_);

  prefetcher_ =
      std::make_unique<data::Prefetcher>(*data_, job.trainer.seed, *job.data.prefetch_threads, job.data.prefetch_bytes);
  reducer_ = make_local_reducer();
  engine_ = std::make_unique<Engine>(EngineOptions{job, data_.get(), prefetcher_.get(), reducer_.get()});
}

void Run::start_state() {
  const std::string root = options_.run_directory + "/checkpoints";
  if (!options_.resume) {
    if (!resolved_.job.model.init_from.empty()) {
      const std::string said = warm_start(state(), resolved_.job.model.init_from, disk_);
      engine_->state_replaced();
      reporter_->say(report::Level::info, "warm_start", said);
    }
    return;
  }
  const checkpoint::Newest newest = std::exchange(newest_, {});
  for (const checkpoint::Damage& damage : newest.damaged) {
    reporter_->say(report::Level::warning, "damaged_checkpoint",
                   "checkpoint " + damage.directory + " is damaged (" + damage.file + ": " + damage.what +
                       "); taking an older one");
  }
  if (!newest.loaded) {
    if (!newest.damaged.empty()) {
      throw Error("every checkpoint in " + root + " is damaged", "look at them with: sinew checkpoint verify " + root);
    }
    reporter_->say(report::Level::info, "resume", "no checkpoint yet: starting from step 0");
    return;
  }
  StateFacts saved;
  restore(state(), saved, *newest.loaded);
  if (saved.data_digest != data_->info().digest) {
    throw Error("the training data is not what it was when this run began (digest " + to_hex(data_->info().digest) +
                    ", was " + to_hex(saved.data_digest) + ")",
                "restore the data, or start a new run with model.init_from: " + newest.loaded->directory);
  }
  window_.sums = saved.window;
  state().control.resume_at(state().step);
  engine_->state_replaced();
  if (digest(state()) != newest.loaded->digest) {
    throw Error(newest.loaded->directory + ": the state does not have the digest it was saved with",
                "report this; it should be impossible");
  }
  last_saved_ = state().step;
  if (state().evaluation.best) writer_->set_best({state().evaluation.best_step});
  reporter_->say(report::Level::info, "resume",
                 "resumed at step " + std::to_string(state().step.value) + " from " + newest.loaded->directory);
}

void Run::start_reporting() {
  // The files are cut back to the step we resume at, so they must be opened after the checkpoint is known.
  if (options_.resume) {
    newest_ = checkpoint::load_newest(disk_, options_.run_directory + "/checkpoints");
    resumed_at_ = newest_.loaded ? newest_.loaded->step : Step(0);
  }
  report::ReporterOptions options;
  options.directory = options_.run_directory;
  options.format = options_.log_format;
  options.terminal = isatty(STDOUT_FILENO) == 1 && options_.log_format == report::LogFormat::human;
  options.color = options.terminal && std::getenv("NO_COLOR") == nullptr;
  options.columns = terminal_columns();
  options.tensorboard = resolved_.job.logging.tensorboard;
  options.ledger = options_.ledger;
  options.resumed_at = resumed_at_;
  reporter_ = std::make_unique<report::Reporter>(options, clock_);
  std::map<std::string, std::string> values = {{"model", resolved_.job.model.name},
                                               {"optimizer", resolved_.job.optimizer.name},
                                               {"lr", nlohmann::json(resolved_.job.optimizer.lr).dump()},
                                               {"batch_size", std::to_string(resolved_.job.trainer.batch_size)},
                                               {"seed", std::to_string(resolved_.job.trainer.seed)}};
  reporter_->hparams(values);
}

RunResult Run::train() {
  open();
  start_reporting();
  const spec::Job& job = resolved_.job;
  reporter_->say(report::Level::info, "start",
                 job.name + ": " + job.model.name + ", " + std::to_string(model::parameter_count(engine_->replica(0))) +
                     " parameters; " + std::to_string(data_->info().train_size) + " training samples, batch " +
                     std::to_string(job.trainer.batch_size) + " in " + std::to_string(engine_->shards()) +
                     " shards on " + std::to_string(engine_->lanes().count()) + " lanes; " + job.trainer.precision +
                     " on " + job.trainer.device);
  reporter_->say(report::Level::info, "run_directory", "run directory: " + options_.run_directory);
  writer_ = std::make_unique<checkpoint::Writer>(
      disk_, checkpoint::WriterOptions{options_.run_directory + "/checkpoints", job.checkpoint.mirror,
                                       job.checkpoint.keep, job.checkpoint.keep_best});
  try {
    start_state();
    loop();
    finish();
  } catch (const Error& error) {
    fail(error);
    throw;
  }
  return result_;
}

void Run::loop() {
  rate_began_ = elapsed();
  next_timed_save_ = next_timed_evaluation_ = next_log_ = elapsed();
  stop_status_ = "done";
  while (true) {
    stop_reason_ = state().evaluation.stop;
    if (!stop_reason_.empty()) return;
    poll();
    if (!obey(state().control.effective_at(state().step))) return;
    if (lengths_.total_steps && state().step.value >= *lengths_.total_steps) {
      stop_reason_ = "all " + std::to_string(*lengths_.total_steps) + " steps done";
      return;
    }
    one_step();
  }
}

void Run::one_step() {
  const Step step = state().step;
  const double lr =
      resolved_.job.optimizer.lr * schedule_->factor(step.value) * state().control.learning_rate_factor(step);
  const bool log_next = log_every_ && (step.value + 1) % *log_every_ == 0;
  const StepResult result = engine_->step(lr, log_next);
  window_.add(result);
  if (result.skipped > 0) {
    skipped_ += result.skipped;
    reporter_->say(report::Level::warning, "skipped_samples",
                   std::to_string(result.skipped) + " corrupt samples skipped in step " + std::to_string(step.value) +
                       ", " + std::to_string(skipped_) + " so far");
  }
  const bool last = lengths_.total_steps && state().step.value >= *lengths_.total_steps;
  const bool evaluates = due(evaluate_every_) || last;
  window_.sums["lr"] = lr;
  if (result.grad_norm >= 0) window_.sums["grad_norm"] = result.grad_norm;
  const bool improved = evaluates && evaluate();
  if (!evaluates && due(log_every_)) log_window(false);  // an evaluation logs by itself
  if (options_.ledger) reporter_->ledger(state().step, digest(state()));
  // Last: a saved step's records must all be written before it is.
  if (improved) save(true);
  if (due(save_every_)) save(false);
  submit_pending();
  show();
}

// Clock and signals become entries for the next step, which nobody has started.
void Run::poll() {
  const int stops = options_.stop_signals != nullptr ? options_.stop_signals->load() : 0;
  if (stops > seen_stops_) {
    seen_stops_ = stops;
    request(ControlEntry::Kind::stop, kResumable, "stopped by a signal");
  }
  const int saves = options_.checkpoint_signals != nullptr ? options_.checkpoint_signals->load() : 0;
  if (saves > seen_checkpoint_signals_) {
    seen_checkpoint_signals_ = saves;
    request(ControlEntry::Kind::checkpoint, 0, "asked for by SIGUSR1");
  }
  const spec::Job& job = resolved_.job;
  const double now = elapsed();
  using Unit = spec::Duration::Unit;
  if (job.trainer.max_duration.unit == Unit::seconds && now >= job.trainer.max_duration.amount) {
    request(ControlEntry::Kind::stop, 0, "trainer.max_duration is over");
  } else if (job.budget.seconds > 0 && now >= job.budget.seconds) {
    request(ControlEntry::Kind::stop, kBudget, "budget.time is used up");
  }
  if (job.trainer.eval_interval.unit == Unit::seconds &&
      now - next_timed_evaluation_ >= job.trainer.eval_interval.amount) {
    next_timed_evaluation_ = now;
    request(ControlEntry::Kind::evaluate, 0, "trainer.eval_interval is over");
  }
  const auto interval = spec::parse_duration(job.checkpoint.interval);
  if (interval && interval->unit == Unit::seconds && now - next_timed_save_ >= interval->amount) {
    next_timed_save_ = now;
    request(ControlEntry::Kind::checkpoint, 0, "checkpoint.interval is over");
  }
}

void Run::request(ControlEntry::Kind kind, double value, const std::string& reason) {
  state().control.append({state().step, kind, value, reason});
}

// Does what the log says for this step; false: stop.
bool Run::obey(const std::vector<ControlEntry>& entries) {
  bool go_on = true;
  for (const ControlEntry& entry : entries) {
    if (entry.kind == ControlEntry::Kind::evaluate && evaluate()) save(true);
    if (entry.kind == ControlEntry::Kind::checkpoint) save(false);
    if (entry.kind == ControlEntry::Kind::stop) {
      exit_code_ = static_cast<int>(entry.value);
      stop_reason_ = entry.reason;
      stop_status_ = exit_code_ == kBudget ? "budget" : exit_code_ == kResumable ? "stopped" : "done";
      go_on = false;
    }
  }
  return go_on;
}

bool Run::evaluate() {
  report::Metrics metrics = window_.means(data_->info().task != data::Task::regression);
  if (data_->info().val_size > 0) {
    for (const auto& [name, value] : engine_->evaluate(data::Part::val).metrics) metrics["val/" + name] = value;
  }
  const Verdict verdict = judge(state().evaluation, state().step, metrics, resolved_.job);
  state().evaluation = verdict.state;
  log_window(true);
  reporter_->say(
      report::Level::info, "evaluation",
      "step " + std::to_string(state().step.value) + ":" + listed(metrics) + (verdict.improved ? "  (best)" : ""));
  if (!verdict.state.stop.empty()) reporter_->say(report::Level::info, "stop", verdict.state.stop);
  return verdict.improved && resolved_.job.checkpoint.keep_best > 0;
}

void Run::log_window(bool evaluated) {
  report::Metrics metrics = window_.means(data_->info().task != data::Task::regression);
  for (const auto& [from, to] : {std::pair{"lr", "train/learning_rate"}, std::pair{"grad_norm", "train/grad_norm"}}) {
    if (window_.sums.contains(from)) metrics[to] = window_.sums.at(from);
  }
  if (evaluated) {
    for (const auto& [name, value] : state().evaluation.last) {
      if (name.starts_with("val/")) metrics[name] = value;
    }
  }
  const double now = elapsed();
  if (now > rate_began_ && state().samples > rate_samples_) {
    samples_per_second_ = static_cast<double>(state().samples - rate_samples_) / (now - rate_began_);
    metrics["throughput/samples_per_sec"] = samples_per_second_;
  }
  rate_began_ = now;
  rate_samples_ = state().samples;
  reporter_->metrics(state().step, state().samples, metrics);
  window_.sums.clear();
}

void Run::save(bool best) {
  if (last_saved_ == state().step) return;
  if (!best && !writer_->ready()) {
    const checkpoint::WriterStatus status = writer_->status();
    if (++told_skipped_saves_ <= 3) {
      reporter_->say(
          report::Level::warning, "checkpoint_skipped",
          "the disk is behind: checkpoint of step " + std::to_string(state().step.value) +
              " skipped; the newest durable one is " +
              (status.durable ? "of step " + std::to_string(status.durable->value) : std::string("not there yet")));
    }
    return;
  }
  reporter_->flush();
  checkpoint::OwnedSnapshot taken = snapshot(state(), facts());
  last_saved_ = state().step;
  if (best) {
    pending_best_ = std::move(taken);
    writer_->set_best({state().step});
    submit_pending();
  } else {
    writer_->submit(std::move(taken));
  }
}

// The best state waits in memory for a busy disk: skipping it would lose it.
void Run::submit_pending() {
  if (pending_best_ && writer_->ready()) {
    writer_->submit(std::move(*pending_best_));
    pending_best_.reset();
  }
  const std::string trouble = writer_->status().trouble;
  if (trouble != told_trouble_ && !trouble.empty()) {
    reporter_->say(report::Level::warning, "checkpoint_failed",
                   "checkpoint not saved: " + trouble + "; training goes on");
  }
  told_trouble_ = trouble;
}

void Run::finish_saving() {
  if (!writer_->wait(kFinalSaveSeconds))
    throw Error("the disk did not finish a checkpoint in 600 s", "look at the disk");
  submit_pending();
  if (!writer_->wait(kFinalSaveSeconds))
    throw Error("the disk did not finish a checkpoint in 600 s", "look at the disk");
  if (last_saved_ != state().step || writer_->status().durable != state().step) {
    last_saved_.reset();
    save(false);
    writer_->wait(kFinalSaveSeconds);
  }
  submit_pending();
  const checkpoint::WriterStatus status = writer_->status();
  if (status.durable != state().step) {
    throw Error(
        "the last checkpoint (step " + std::to_string(state().step.value) + ") could not be saved: " + status.trouble,
        "free space and run again with --resume; the newest durable one is of step " +
            (status.durable ? std::to_string(status.durable->value) : std::string("none")));
  }
  checkpoint::point(disk_, options_.run_directory + "/checkpoints", "last", state().step);
  const auto& evaluation = state().evaluation;
  const std::string best = options_.run_directory + "/checkpoints/step-" + [&] {
    char text[16];
    std::snprintf(text, sizeof text, "%08lld", static_cast<long long>(evaluation.best_step.value));
    return std::string(text);
  }();
  if (evaluation.best && disk_.exists(best))
    checkpoint::point(disk_, options_.run_directory + "/checkpoints", "best", evaluation.best_step);
}

// The last word on the model: its metrics on data that took no part in any decision.
void Run::test(report::Outcome& outcome) {
  if (data_->info().test_size == 0) return;
  report::Metrics metrics;
  for (const auto& [name, value] : engine_->evaluate(data::Part::test).metrics) metrics["test/" + name] = value;
  reporter_->metrics(state().step, state().samples, metrics);
  reporter_->say(report::Level::info, "test", "test:" + listed(metrics));
  outcome.last.insert(metrics.begin(), metrics.end());
}

void Run::finish() {
  finish_saving();
  report::Outcome outcome = outcome_of(state(), resolved_.job, data_->info());
  const std::string restored = restore_best(*engine_, resolved_.job, options_.run_directory, disk_);
  if (!restored.empty()) reporter_->say(report::Level::info, "best_restored", restored);
  write_artifact(state(), resolved_.job, resolved_yaml_, data_->info(), options_.run_directory, disk_);
  if (stop_status_ != "stopped") test(outcome);  // who is told to leave does not start anything
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
}

void Run::fail(const Error& error) {
  report::Outcome outcome = outcome_of(state(), resolved_.job, data_->info());
  outcome.status = "failed";
  outcome.exit_code = kTrainingError;
  outcome.error = error.what();
  outcome.hint = error.hint;
  reporter_->flush();
  write_report(outcome);
  reporter_->finish(false);
}

void Run::write_report(report::Outcome& outcome) {
  outcome.started_wall_seconds = started_;
  outcome.seconds = elapsed();
  try {
    write_text(disk_, options_.run_directory + "/report.json", report::outcome_json(outcome));
  } catch (const DiskError& trouble) {
    reporter_->say(report::Level::error, "report_failed", trouble.what());
  }
}

void Run::show() {
  const double now = elapsed();
  if (now < next_log_) return;
  next_log_ = now + 0.1;
  report::Progress progress;
  progress.step = state().step;
  progress.total_steps = lengths_.total_steps.value_or(0);
  progress.epoch =
      static_cast<double>(state().cursor.epoch) +
      static_cast<double>(state().cursor.offset) / static_cast<double>(std::max<int64_t>(1, data_->info().train_size));
  if (lengths_.total_steps)
    progress.total_epochs = static_cast<double>(*lengths_.total_steps) / static_cast<double>(lengths_.steps_per_epoch);
  progress.samples = state().samples;
  const double rate = now > rate_began_ + 0.2
                          ? static_cast<double>(state().samples - rate_samples_) / (now - rate_began_)
                          : samples_per_second_;
  progress.samples_per_second = rate;
  if (lengths_.total_steps && rate > 0) {
    progress.eta_seconds =
        static_cast<double>((*lengths_.total_steps - state().step.value) * lengths_.batch_size) / rate;
  }
  progress.shown = window_.means(data_->info().task != data::Task::regression);
  for (const auto& [name, value] : state().evaluation.last) {
    if (name == "val/accuracy" || name == "val/loss" || name == "val/rmse") progress.shown[name] = value;
  }
  reporter_->progress(progress);
}

}  // namespace

RunResult run(const RunOptions& options, Disk& disk, Clock& clock) {
  return Run(options, disk, clock).train();
}

}  // namespace sinew::train
