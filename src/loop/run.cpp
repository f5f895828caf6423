// Runs the loop of a run: applies control entries, makes one step, and does what is due after it.
#include "base/process.h"
#include "loop/one_run.h"
#include "rundir/rundir.h"

namespace sinew::loop {
namespace {

constexpr double kPlaceCheckSeconds = 1;  // seconds between two looks at the run's directory
constexpr double kSuccessorSeconds = 10;  // time for a suspended or starting worker to join

std::string names_of(const SkippedSamples& samples) {
  std::string names;
  for (const std::string& name : samples.names) names += (names.empty() ? ": " : "; ") + name;
  if (samples.count > static_cast<int64_t>(samples.names.size())) names += "; ...";
  return names;
}

}  // namespace

void Window::add(const StepResult& step) {
  sums["loss"] += step.loss_sum;
  sums["weight"] += step.weight;
  sums["seen"] += static_cast<double>(step.seen);
  sums["correct"] += static_cast<double>(step.correct);
  sums["lr"] = step.learning_rate;
  if (step.grad_norm >= 0) sums["grad_norm"] = step.grad_norm;
}

report::Metrics Window::means(bool classes) const {
  report::Metrics metrics;
  const auto at = [&](const char* name) { return sums.contains(name) ? sums.at(name) : 0.0; };
  if (at("weight") > 0) metrics["train/loss"] = at("loss") / at("weight");
  if (classes && at("seen") > 0) metrics["train/accuracy"] = at("correct") / at("seen");
  return metrics;
}

BeginTime begin_time(const Clock& clock) {
  const double wall_seconds = clock.wall_seconds();
  return {wall_seconds, clock.monotonic_seconds()};
}

Run::Run(const Plan& plan, const RunOptions& options, Trainer& trainer, Members* members, WriteFence& disk,
         Clock& clock)
    : plan_(plan),
      options_(options),
      trainer_(trainer),
      members_(members),
      disk_(disk),
      clock_(clock),
      began_(options.began.monotonic_seconds),
      tracer_(options.stages),
      experimenter_(options.experiment, trainer, options.accounts, clock),
      going_back_(options.going_back) {}

RunResult Run::train() {
  enter(Stage::startup);
  count_intervals();
  plan_steps();
  auto loaded = state_to_begin_with();
  const std::string changes = loaded ? check_job(*loaded) : "";
  if (is_leader()) remove_earlier_report();
  start_reporting(loaded ? loaded->step : Step(0));
  keep_decisions();
  log_start();
  if (!changes.empty()) reporter_->say(report::Level::warning, "options_changed", changes);
  try {
    start_state(loaded);
    loaded.reset();
    if (members_ && members_->going_back().too_often()) return end_going_back();
    if (members_) members_->begin(state().step, trainer_.digest());
    // The coordinator learns of the checkpoint, even if the leader that wrote it died before it could tell.
    if (members_ && is_leader() && last_saved_) members_->report(last_saved_, "");
    began_at_ = state().step;
    if (options_.budget_from_first_step) began_ = clock_.monotonic_seconds();
    if (options_.accounts != nullptr) options_.accounts->steps_begin();
    loop();
    if (options_.accounts != nullptr) options_.accounts->steps_end();
    if (leads_at_end()) finish();
  } catch (const DirectoryLost&) {
    throw;  // the report cannot be written either
  } catch (const WriterReplaced&) {
    throw;  // another process writes the report
  } catch (const group::Fenced& out) {
    if (!members_->unled(options_.run_directory)) throw;
    throw group::Fenced(std::string(out.what()) + "; " + save_unled());
  } catch (const group::MembersDiffer& differ) {
    return members_differ(differ);
  } catch (const MemoryChanged& changed) {
    memory_changed(changed);
    throw;
  } catch (const Diverged& error) {
    // The step diverges on every member in the same way; only the leader reports it.
    if (!leads_at_end()) return {.exit_code = exit_code_, .step = state().step};
    fail(error);
    throw;
  } catch (const ShardFailed& error) {
    // The failure may be specific to this worker. With peers it ends this worker only: the others try the shard, and
    // the supervisor counts such failures.
    if (members_ && members_->has_peers()) throw;
    fail(error);
    throw;
  } catch (const Error& error) {
    fail(error);
    throw;
  }
  result_.exit_code = exit_code_;
  return result_;
}

void Run::loop() {
  enter(Stage::loop);
  experimenter_.end();  // a run that went back may have left one
  if (const auto threads = state().control.loader_threads(state().step)) trainer_.use_loader_threads(*threads);
  rate_began_ = now();
  rate_samples_ = state().samples;
  last_timed_save_ = last_timed_evaluation_ = last_timed_log_ = next_show_ = now();
  next_accounts_ = now() + 1;  // the first ones soon, so that whoever watches a new run sees something
  while (advance()) {
  }
  keep_trace(tracer_.end(clock_.monotonic_seconds()));
  if (experimenter_.runs()) say_unfinished("the steps ended before it was made");
  experimenter_.end();
  if (state().step != began_at_) show(true);  // a stop may have come shortly after the last progress
  confirm();
  report_work(Work::Kind::nothing);
}

// The plan depends only on the job and the control log, so a resumed run has the same plan.
void Run::plan_steps() {
  Lengths lengths = lengths_;
  if (state().control.changes_batch_size()) {
    lengths.total_steps =
        count_steps(plan_.job.trainer, lengths_, [this](int64_t step) { return trainer_.batch_size(Step(step)); });
  }
  total_steps_ = lengths.total_steps;
  if (!lengths.total_steps) lengths.total_steps = state().control.schedule_steps(state().step);
  schedule_.emplace(plan_.job.scheduler, lengths);
}

bool Run::advance() {
  if (members_)
    members_->boundary(state(), [this] {
      enter(Stage::checkpoint);
      StateFacts of_joiner = facts();
      of_joiner.records = reporter_->records();
      checkpoint::OwnedSnapshot taken = trainer_.snapshot(of_joiner);
      enter(Stage::loop);
      return taken;
    });
  stop_reason_ = state().evaluation.stop;
  if (!stop_reason_.empty()) return false;
  if (const auto stop = state().control.stop_at(state().step)) {
    exit_code_ = static_cast<int>(stop->value);
    stop_reason_ = stop->reason;
    stop_status_ = exit_code_ == kBudget ? "budget" : exit_code_ == kResumable ? "stopped" : "done";
    return false;
  }
  if (total_steps_ && state().step.value >= *total_steps_) {
    stop_reason_ = "all steps are done";
    return false;
  }
  if (budget_steps_ && state().step.value >= *budget_steps_) {
    exit_code_ = kBudget;
    stop_status_ = "budget";
    stop_reason_ = "budget.training is used up";
    return false;
  }
  if (!members_ && state().step != *began_at_ && seconds_left() <= 0) {  // no other member has to agree
    exit_code_ = kBudget;
    stop_status_ = "budget";
    stop_reason_ = budget().option + " is used up";
    return false;
  }
  if (is_leader()) keep_trace(tracer_.next_step(state().step, clock_.monotonic_seconds()));
  poll();
  one_step();
  return true;
}

double Run::learning_rate() const {
  const Step step = state().step;
  return plan_.job.optimizer.lr * schedule_->factor(step.value) * state().control.learning_rate_factor(step);
}

void Run::one_step() {
  const Step step = state().step;
  const bool log_next = log_every_ && (step.value + 1) % *log_every_ == 0;
  const StepResult result = compute_step(log_next);
  pending_entries_.clear();
  report_work(Work::Kind::recording);
  if (!result.entries.empty()) {
    for (const ControlEntry& entry : result.entries) state().control.append(entry);
    plan_steps();
  }
  window_.add(result);
  evaluation_window_.add(result);
  skipped_ += result.skipped.count;
  log_wrong(result.wrong);
  log_left_out(result.left_out, result.damaged_copies);
  log_skipped(result.skipped, "in step " + std::to_string(step.value) + ", " + std::to_string(skipped_) + " so far");
  const bool last = total_steps_ && state().step.value >= *total_steps_;
  // Evaluates before saving, because a step must be saved in its final state.
  const DueActions due_actions = apply_entries();
  const bool evaluates = due(evaluate_every_) || last || due_actions.evaluation;
  const bool improved = evaluates && evaluate();
  if (!evaluates && due(log_every_)) log_window(false);  // an evaluation logs the window itself
  std::optional<Digest> own;
  if (options_.ledger) {
    enter(Stage::digest);
    own = trainer_.digest();
    enter(Stage::loop);
    reporter_->ledger(state().step, *own);
  }
  reporter_->end_step();
  if (unled_) throw *unled_;
  // A pending best state is submitted only now, because the records of its step must be written before the step is
  // saved.
  submit_pending();
  // All members compare their states, although only the leader saves: a saved state must be that of all members.
  const bool saves = improved || saves_at(state().step) || due_actions.checkpoint;
  if (saves || result.compare) {
    enter(saves ? Stage::checkpoint : Stage::digest);
    confirm(own);
  }
  if (saves) {
    enter(Stage::checkpoint);
    save(improved);
  }
  submit_pending();
  enter(Stage::loop);
  show(last);
  report_work(Work::Kind::nothing);
}

// A loss or gradient that is not finite may come from a faulty machine, and so may contradicting shards. All members
// have the same result, and still the state before the step. Before they call it a fault of the job, they compare these
// states, and compute the step again with every shard computed twice.
StepResult Run::compute_step(bool want_norm) {
  const StepMessage message{learning_rate(), pending_entries_};
  std::string first;
  if (!experimenter_.before_step(members_ ? members_->computing() : 1, trainer_.batch_size(state().step)))
    say_unfinished("other workers compute now than at its begin, or the batch size has changed");
  if (experimenter_.runs()) pace_.leave_out();
  try {
    StepResult result = trainer_.step(message, want_norm);
    if (experimenter_.after_step()) reporter_->say(report::Level::info, "experiment", text_of(experimenter_.results()));
    return result;
  } catch (const Diverged& diverged) {
    first = diverged.what();
  }
  confirm();
  trainer_.audit_next_step();
  StepResult result = trainer_.step(message, want_norm);
  reporter_->say(report::Level::warning, "step_repeated",
                 first +
                     "; the step was computed again without that, so the first result was wrong: a processor or "
                     "memory of this run is faulty");
  return result;
}

// Signals, the clock and users' requests become entries that travel with this step and take effect at the next one,
// which no member has started.
void Run::poll() {
  const double at = now();
  pace_.step_begins(at, trainer_.batch_size(state().step));
  if (at >= next_look_) look_at_place();
  look_at_energy();
  warn_of_still_counter();
  poll_signals();
  if (!is_leader()) return;
  poll_clock();
  take_requests();
}

void Run::take_requests() {
  if (const auto due = experimenter_.due(pace_.steps())) request(due->kind, due->value, due->reason, due->request);
  if (options_.experiment && !experimenter_.results().empty())
    request(ControlEntry::Kind::stop, 0, "the experiment is made");
  if (!members_) return;
  for (const ControlEntry& entry : members_->requests()) {
    if (!accepts(entry)) continue;
    if (entry.kind == ControlEntry::Kind::experiment) {
      experimenter_.ask(entry);
      continue;
    }
    request(entry.kind, entry.value, reason_of_request(entry), entry.request);
  }
}

void Run::say_unfinished(const std::string& why) {
  reporter_->say(report::Level::warning, "experiment_unfinished", "the experiment has no result: " + why);
}

// A user may change the interval while the run trains.
spec::Duration Run::save_interval() const {
  using Unit = spec::Duration::Unit;
  if (const auto entry = state().control.checkpoint_interval(state().step))
    return {entry->value, entry->kind == ControlEntry::Kind::checkpoint_steps ? Unit::steps : Unit::seconds};
  return job_save_interval_;
}

bool Run::saves_at(Step step) const {
  const auto every = steps_of(save_interval(), lengths_);
  return every && *every > 0 && step.value % *every == 0;
}

void Run::look_at_place() {
  next_look_ = now() + kPlaceCheckSeconds;
  check_place();
  disk_.check();
  keep_decisions();  // the leader may have died before it wrote them
}

void Run::check_place() const {
  const std::string why = options_.place_lost ? options_.place_lost() : "";
  if (why.empty()) return;
  throw DirectoryLost("RUN_DIRECTORY_LOST",
                      "the run stops at step " + std::to_string(state().step.value) + ", because " + why,
                      "nothing was written there since; resume the run where its directory is now, or restore it");
}

bool Run::may_write() const {
  return (!members_ || members_->may_write()) && (!options_.place_lost || options_.place_lost().empty());
}

// Refuses a batch size below 1. With trainer.drop_last, also refuses one above the number of training samples: an epoch
// would have no batch, which would end the run and every resume of it.
bool Run::accepts(const ControlEntry& entry) {
  if (entry.kind != ControlEntry::Kind::batch_size) return true;
  const auto size = static_cast<int64_t>(entry.value);
  const int64_t samples = plan_.data.train_size;
  if (size >= 1 && data::steps_per_epoch(samples, size, plan_.job.trainer.drop_last) > 0) return true;
  reporter_->say(report::Level::warning, "control_refused",
                 "batch_size " + std::to_string(size) +
                     " is refused: with trainer.drop_last no batch of this size fits into " + std::to_string(samples) +
                     " training samples");
  return false;
}

void Run::poll_signals() {
  const int stops = options_.stop_signals != nullptr ? options_.stop_signals->load() : 0;
  if (stops > seen_stops_) {
    seen_stops_ = stops;
    if (!members_) {
      request(ControlEntry::Kind::stop, kResumable, stopped_by(seen_stops_));
    } else {
      members_->leave();  // the run continues without this worker
    }
  }
  poll_leaving();
  const int saves = options_.checkpoint_signals != nullptr ? options_.checkpoint_signals->load() : 0;
  if (saves > seen_checkpoint_signals_) {
    seen_checkpoint_signals_ = saves;
    request(ControlEntry::Kind::checkpoint, 0, "requested by SIGUSR1");
  }
}

// Before the last worker stops the run, it waits kSuccessorSeconds for a worker that could take over, such as one that
// was cut off or has just started. This worker may be killed before that time is over, so it saves the state first.
void Run::poll_leaving() {
  const bool leaves = seen_stops_ > 0 && members_;
  if (leaves && !members_->has_peers() && !saved_to_leave_) {
    saved_to_leave_ = true;
    request(ControlEntry::Kind::checkpoint, 0, "the last computing worker is about to leave");
  }
  if (!leaves || !members_->is_alone()) {
    alone_since_.reset();
  } else if (!alone_since_) {
    alone_since_ = now();
  } else if (now() - *alone_since_ >= kSuccessorSeconds) {
    alone_since_ = now();
    request(ControlEntry::Kind::stop, kResumable, stopped_by(seen_stops_));
  }
}

void Run::poll_clock() {
  using Unit = spec::Duration::Unit;
  const spec::Job& job = plan_.job;
  if (job.trainer.max_duration.unit == Unit::seconds && elapsed() >= job.trainer.max_duration.amount) {
    request(ControlEntry::Kind::stop, 0, "trainer.max_duration is over");
  } else if (const std::string why = why_budget_ends(); !why.empty()) {
    request(ControlEntry::Kind::stop, kBudget, why);
  }
  warn_of_short_budget();
  estimate_last_step();
  const auto over = [&](const spec::Duration& interval, double& since) {
    if (interval.unit != Unit::seconds || now() - since < interval.amount) return false;
    since = now();
    return true;
  };
  const auto has_time = [&] {
    return seconds_left() > pace_.steps().longest() + evaluation_seconds(plan_.data.val_size);
  };
  if (job.trainer.eval_interval.unit == Unit::seconds && has_time() &&
      over(job.trainer.eval_interval, last_timed_evaluation_))
    request(ControlEntry::Kind::evaluate, 0, "trainer.eval_interval is over");
  if (over(save_interval(), last_timed_save_))
    request(ControlEntry::Kind::checkpoint, 0, "checkpoint.interval is over");
  if (over(job.logging.interval, last_timed_log_) && state().step.value > 0) log_window(false);
}

void Run::request(ControlEntry::Kind kind, double value, const std::string& reason, int64_t number) {
  pending_entries_.push_back({state().step.next(), kind, value, reason, false, number});
}

void Run::report_work(Work::Kind kind) {
  if (options_.on_work) options_.on_work(0, {kind, state().step.value});
}

// Applies the control log's entries for this step, except stops: advance() handles a stop before the next step begins.
DueActions Run::apply_entries() {
  DueActions due_actions;
  for (const ControlEntry& entry : state().control.apply(state().step)) {
    due_actions.evaluation = due_actions.evaluation || entry.kind == ControlEntry::Kind::evaluate;
    due_actions.checkpoint = due_actions.checkpoint || entry.kind == ControlEntry::Kind::checkpoint;
    if (entry.kind == ControlEntry::Kind::experiment)
      experimenter_.begin(static_cast<int64_t>(entry.value), members_ ? members_->computing() : 1,
                          trainer_.batch_size(state().step));
    if (entry.kind == ControlEntry::Kind::loader_threads)
      trainer_.use_loader_threads(static_cast<int64_t>(entry.value));
    const bool told = entry.kind != ControlEntry::Kind::schedule_steps;  // it comes often
    if (told && (members_ || !entry.reason.empty())) {
      reporter_->say(report::Level::info, "control",
                     "step " + std::to_string(entry.effective.value) + ": " + to_text(entry) + ": " + entry.reason);
    }
  }
  return due_actions;
}

void Run::log_wrong(const std::vector<std::string>& wrong) {
  for (const std::string& one : wrong)
    reporter_->say(report::Level::error, "audit_failed",
                   one +
                       "; the worker is fenced, and the others computed its part again. Test the memory and the "
                       "processor of its machine");
}

void Run::log_skipped(const SkippedSamples& skipped, const std::string& where) {
  if (skipped.count == 0) return;
  reporter_->say(report::Level::warning, "skipped_samples",
                 std::to_string(skipped.count) + " corrupt samples skipped " + where + names_of(skipped));
}

void Run::log_left_out(const SkippedSamples& left_out, const std::vector<std::string>& damaged_copies) {
  for (const std::string& one : damaged_copies)
    reporter_->say(report::Level::error, "damaged_copy",
                   one + "; that worker leaves the group. Copy the data to its machine again, and check its disk");
  if (left_out.count == 0) return;
  reporter_->say(report::Level::warning, "left_out",
                 std::to_string(left_out.count) + " samples do not decode; all workers leave them out from now on" +
                     names_of(left_out));
}

void Run::warn_of_missing(const report::Metrics& metrics) {
  for (const auto& [metric, text] : missing_metrics(metrics, plan_.job)) {
    if (reported_missing_.insert(metric).second) reporter_->say(report::Level::warning, "metric_missing", text);
  }
}

bool Run::evaluate() {
  const double began = now();
  report::Metrics metrics = evaluation_window_.means(plan_.data.task != data::Task::regression);
  if (plan_.data.val_size > 0) {
    validated_ = Measured{state().step, evaluate_validation()};
    const EvaluationResult& result = validated_->result;
    for (const auto& [name, value] : result.metrics) metrics["val/" + name] = value;
    log_wrong(result.wrong);
    log_left_out(result.left_out, result.damaged_copies);
    log_skipped(result.skipped, "in the evaluation of step " + std::to_string(state().step.value));
  }
  warn_of_missing(metrics);
  const Judgement verdict = judge(state().evaluation, state().step, metrics, plan_.job);
  state().evaluation = verdict.state;
  if (verdict.improved) best_validated_ = validated_;
  report_work(Work::Kind::recording);  // the engine's lanes are idle now
  enter(Stage::loop);
  evaluation_window_.sums.clear();
  if (plan_.data.val_size > 0) pace_.evaluated(now() - began);
  take_outlook();
  log_window(true);
  reporter_->say(
      report::Level::info, "evaluation",
      "step " + std::to_string(state().step.value) + ":" + metrics_text(metrics) + (verdict.improved ? "  (best)" : ""),
      metrics);
  if (const std::string text = none_better_text(
          state().outlook, options_.run_directory,
          plan_.job.checkpoint.keep_best > 0 && plan_.job.checkpoint.monitor == state().outlook.metric);
      !text.empty() && plan_.job.early_stopping.monitor.empty() && verdict.state.stop.empty()) {
    state().outlook.told = true;
    reporter_->say(report::Level::info, "none_better", text);
  }
  if (!verdict.state.stop.empty()) reporter_->say(report::Level::info, "stop", verdict.state.stop);
  return verdict.improved && best_to_keep() > 0;
}

// If the membership ends because no coordinator leads the run any more, this worker evaluates alone, with the same
// result. Otherwise the step would not be complete, and its state could not be saved.
EvaluationResult Run::evaluate_validation() {
  // The counters begin again at 0 after some time, and an evaluation may take longer than that.
  const std::function<bool()> reads_energy = [this] {
    const std::scoped_lock one_lane(energy_.mutex);
    look_at_energy();
    return false;
  };
  try {
    return trainer_.evaluate(data::Split::val, options_.joules ? reads_energy : nullptr);
  } catch (const group::Fenced& out) {
    if (!members_->unled(options_.run_directory)) throw;
    unled_ = out;
  }
  trainer_.leave_group();
  return trainer_.evaluate(data::Split::val);
}

// The only worker of a run goes back to its newest checkpoint by itself. With several members, the supervisor starts
// the worker again. It also starts a member again if another one has replaced it as the leader.
RunResult run(const Plan& plan, const RunOptions& options, Trainer& trainer, Members* members, WriteFence& disk,
              Clock& clock) {
  RunOptions attempt = options;
  while (true) {
    Run run(plan, attempt, trainer, members, disk, clock);
    try {
      return run.train();
    } catch (const MemoryChanged&) {
      if (members) throw;
      attempt.resume = true;
      attempt.began.monotonic_seconds = clock.monotonic_seconds();
      attempt.going_back = run.going_back();
      if (options.joules) {  // the energy counts as the time does: from here on, beside what the checkpoint says
        const double used = options.joules();
        attempt.joules = [&options, used] { return options.joules() - used; };
      }
    } catch (const WriterReplaced& replaced) {
      if (!members) throw;
      throw group::Fenced(replaced.what());
    }
  }
}

}  // namespace sinew::loop
