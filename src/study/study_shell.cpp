#include "study/study_shell.h"

#include <algorithm>

#include "base/exit_code.h"
#include "base/printable.h"
#include "base/proc.h"
#include "rundir/rundir.h"
#include "study/directory.h"
#include "study/folds.h"
#include "study/search_space.h"
#include "study/table.h"
#include "study/text.h"

namespace sinew::study {
namespace {

constexpr double kShowSeconds = 0.5;
constexpr double kPatienceSeconds = 60;  // the least time between asking a trial to save and end, and killing it
// Added to a command's grace, so that the trial's `sinew` process can end the command before it is killed itself.
constexpr double kGraceSeconds = 10;

double patience_of(const spec::Job& job) {
  return std::max(kPatienceSeconds, job.command.grace_seconds + kGraceSeconds);
}

std::optional<Generations> generations_of(Disk& disk, const OpenStudy& study, const TrialResults& results) {
  if (!trains_in_generations(study.head.sampler)) return std::nullopt;
  const auto directory_of = [&study](int64_t id) { return trial_directory(study.directory, id); };
  const auto metrics_of = [&results](int64_t id) { return results.metrics_of(id); };
  return Generations(disk, study.job, study.head.max_resource, directory_of, metrics_of);
}

}  // namespace

StudyShell::StudyShell(const Options& options, const OpenStudy& study, RecordFile& record, StudyLeader& leader,
                       const TrialSlots& slots)
    : options_(options),
      study_(study),
      folds_(leads_folds(study.job)),
      space_(space_of(study.job.tune)),
      record_(record),
      leader_(leader),
      slots_(slots),
      cores_(own_cores()),
      budget_(study.job.tune, options.clock),
      results_(study),
      generations_(generations_of(options.disk, study, results_)),
      launcher_(options, study, slots.most(), generations_ ? &*generations_ : nullptr),
      scheduler_(scheduler_options(), study.events),
      cleanup_(options.disk, study.directory, scheduler_.study(), folds_),
      trials_(patience_of(study.job), options.clock),
      locked_at_(options.clock.monotonic_seconds()),
      shown_at_(locked_at_ - kShowSeconds) {
  for (const StudyEvent& event : study_.events) budget_.observe(event);
}

SchedulerOptions StudyShell::scheduler_options() {
  SchedulerOptions options = study::scheduler_options(study_.head, study_.job.tune, space_);
  options.study.earlier = earlier_studies(options_.disk, study_.directory, study_.job, space_, options_.environment);
  options.slots = slots_.now();
  options.record = [this](StudyEvent event) {
    if (!starts_process(event) && budget_.started(event.id)) event.seconds = budget_.seconds_of(event.id);
    record_.append(space_, event);
    budget_.observe(event);
  };
  options.leader = leader_.name();
  options.abandoned = [this](const std::string& leader, int64_t id) {
    return leader_.abandoned(leader, trial_directory(study_.directory, id));
  };
  return options;
}

std::optional<int> StudyShell::turn() {
  const double now = options_.clock.monotonic_seconds();
  if (slots_.due(now)) follow_free_cores(now);
  if (stop_.requested()) return stop_trials() ? std::optional(kResumable) : std::nullopt;
  bool over = false;
  if (const auto lock = leader_.try_lock()) {
    locked_at_ = now;
    over = advance();
  } else if (now - locked_at_ >= StudyLeader::kLockSeconds) {
    locked_at_ = now;
    say("another process has held the lock of this study for " + short_number(StudyLeader::kLockSeconds) +
        " s; if it is stopped, continue or end it");
  }
  if (over) return finish();
  show_table(now);
  return std::nullopt;
}

// Does not ask commands to end when the number of slots falls, because a command may have saved nothing. A command runs
// to its end, and no other trial takes its slot.
void StudyShell::follow_free_cores(double now) {
  const auto change = slots_.observe(now, cpu_times(cores_));
  if (!change) return;
  say(*change);
  scheduler_.set_slots(slots_.now());
  if (!study_.job.command.given()) trials_.give_way(slots_.now());
}

void StudyShell::catch_up() {
  for (const StudyEvent& event : record_.news(space_)) {
    scheduler_.observe(event);
    budget_.observe(event);
    if (event.kind == StudyEvent::Kind::end) cleanup_.add(event.id);
  }
}

bool StudyShell::advance() {
  catch_up();
  const DrainMode drain = drain_mode(budget_.used(), scheduler_.pauses(), !scheduler_.best().empty());
  start_trials(drain);
  check_trials();
  if (!trials_.empty() || !scheduler_.over(drain)) return false;
  cleanup_.clean(scheduler_);
  return true;
}

void StudyShell::start_trials(DrainMode drain) {
  while (const auto start = scheduler_.next(drain)) {
    const tune::Trial& trial = scheduler_.study().trial(start->id);
    const auto changes = overrides_of(space_, trial.point);
    std::string words;
    for (const std::string& change : changes) words += change + " ";
    if (folds_)
      say(start->id,
          (start->continues ? "continues in " : "begins in ") + trial_directory(study_.directory, start->id));
    else
      say(start->id, (start->continues ? "goes on " : words + " ") + "(" + start->why + ")");
    const ProcessOptions process = launcher_.prepare(trial, changes);
    budget_.start(start->id);
    const GenerationEnd generation =
        generations_ ? generations_->end_of(scheduler_.study(), start->id) : GenerationEnd();
    trials_.start(start->id, process, results_.metrics_of(start->id), generation);
  }
}

void StudyShell::check_trials() {
  auto& all = trials_.all();
  for (auto at = all.begin(); at != all.end();) {
    auto& [id, trial] = *at;
    const auto end = trial.process.wait();
    take_evaluations(id, trial);
    if (trial.asked_at) trials_.ask_to_end(trial);
    if (!end) {
      ++at;
      continue;
    }
    const int64_t ended_id = id;
    const TrialProcess ended = std::move(trial);
    at = all.erase(at);
    take_end(ended_id, ended, *end);
  }
}

void StudyShell::take_evaluations(int64_t id, TrialProcess& trial) {
  for (const auto& evaluation : trial.metrics.next()) {
    std::string why = "its generation is over";
    // How far a command trains beyond its generation until it ends depends on timing. The study therefore ignores
    // evaluations beyond the generation.
    const bool counts = evaluation.number <= trial.generation.evaluations();
    bool ends = counts && scheduler_.report(id, static_cast<double>(evaluation.number), evaluation.value, why);
    if (trial.generation.ends_at(evaluation.number)) ends = true;
    if (!ends) continue;
    say(id, why);
    trials_.ask_to_end(trial);
  }
}

std::vector<double> StudyShell::final_values(int64_t id, const TrialProcess& trial) const {
  const TrialMetrics& metrics = trial.metrics;
  if (metrics.count() >= trial.generation.evaluations()) return metrics.at(trial.generation.evaluations());
  if (generations_ && metrics.count() == 0) {  // the process had nothing left to train
    if (auto inherited = generations_->inherited_values(scheduler_.study(), id); !inherited.empty()) return inherited;
  }
  return results_.final_values(metrics);
}

void StudyShell::take_end(int64_t id, const TrialProcess& trial, const ProcessEnd& end) {
  budget_.stop(id);  // this comes first, so that the event log and this process count the same seconds
  const bool finished = end == ProcessEnd{kDone, 0} || end == ProcessEnd{kBudget, 0};
  const bool ended_generation = trial.generation.reached() && ended_as_asked(end);
  const bool saved = !generations_ || trial.metrics.count() == 0 || generations_->saved(id);
  TrialEnd result;
  if (!saved && (finished || ended_generation)) {
    result = scheduler_.fail(
        id, "it left no complete checkpoint in SINEW_CHECKPOINT_DIR for the next generation to start from");
  } else {
    std::optional<Outcome> outcome;
    if (finished || (trial.generation.reached() && saved))
      outcome = outcome_of(study_.head.aim, final_values(id, trial));
    result = scheduler_.end(id, end, outcome, trial.gave_way);
  }
  say_end(id, result);
  if (!result.resumable) cleanup_.add(id);
  cleanup_.clean(scheduler_);
}

// Does not read the newest evaluations, because the next leader finds them in the metrics of the trials.
bool StudyShell::stop_trials() {
  for (const int64_t id : trials_.end_all(stop_.immediate())) budget_.stop(id);
  if (!trials_.empty()) return false;
  record_seconds();
  if (options_.screen != nullptr) options_.screen->end();
  if (folds_) write_folds(options_.disk, study_.directory, outcome());
  say("stopped; to go on: sinew " + std::string(folds_ ? "resume " : "tune resume ") + shell_quoted(study_.directory));
  return true;
}

void StudyShell::record_seconds() {
  const auto lock = leader_.try_lock();
  if (!lock) return;  // another leader holds the lock; later leaders will underestimate the time
  record_.news(space_);
  for (const int64_t id : scheduler_.running()) {
    StudyEvent event{.kind = StudyEvent::Kind::leave, .id = id};
    event.seconds = budget_.seconds_of(id);
    record_.append(space_, event);
  }
}

int StudyShell::finish() {
  if (options_.screen != nullptr) options_.screen->end();
  if (folds_) return finish_folds();
  const tune::Study& study = scheduler_.study();
  for (const std::string& line : budget_.summary(study_.directory, study.next_id() < study.options().budget)) say(line);
  if (scheduler_.ended_early()) say("ended early: " + *scheduler_.ended_early());
  show_study(options_, study_.directory, study, study_.head, study_summary(study_.directory, study, study_.head));
  return scheduler_.best().empty() ? kTrainingError : kDone;
}

rundir::Outcome StudyShell::outcome() const {
  return outcome_of_folds(options_.disk, study_, scheduler_.study(), results_);
}

int StudyShell::finish_folds() {
  const rundir::Outcome ended = outcome();
  const std::string trouble = write_folds(options_.disk, study_.directory, ended);
  output_lines(options_, folds_summary(study_.directory, ended));
  if (!trouble.empty()) say("the run has no report.html: " + trouble);
  return ended.exit_code;
}

void StudyShell::say(const std::string& line) const {
  if (options_.output) options_.output(line);
}

void StudyShell::say(int64_t id, const std::string& text) const {
  if (!folds_) return say("trial " + std::to_string(id) + ": " + text);
  say("fold " + short_number(scheduler_.study().trial(id).point[0]) + ": " + text);
}

void StudyShell::say_end(int64_t id, const TrialEnd& end) const {
  const tune::Trial& trial = scheduler_.study().trial(id);
  std::string text = end.why;
  if (trial.state == tune::TrialState::complete) text += ", " + result_text(study_.head.aim, trial);
  if (end.best && !folds_)
    text += study_.head.aim.objectives.size() == 1 ? ", the best so far" : ", among the best so far";
  if (trial.state == tune::TrialState::failed) {
    const std::string own = trial_directory(study_.directory, id);
    const auto ended = rundir::parse_outcome(rundir::report_text(options_.disk, own));
    if (ended && !ended->error.empty()) text += ": " + ended->error;
    text += "; see " + own + "/output.log";
  }
  say(id, text);
}

void StudyShell::show_table(double now) {
  if (options_.screen == nullptr || !options_.screen->terminal() || now - shown_at_ < kShowSeconds) return;
  shown_at_ = now;
  const TerminalSize size = options_.screen->size();
  options_.screen->show(
      study_table(scheduler_.study(), study_.head, budget_.elapsed_seconds(), size.columns, size.rows / 2));
}

}  // namespace sinew::study
