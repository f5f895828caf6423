#include "study/scheduler.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/error.h"
#include "base/exit_code.h"
#include "study/folds.h"
#include "study/generations.h"

namespace sinew::study {

using tune::PruneDecision;
using tune::TrialState;
using Kind = StudyEvent::Kind;

namespace {

tune::PrunerOptions pruner_options(const SchedulerOptions& options) {
  tune::PrunerOptions pruner;
  pruner.name = options.pruner;
  pruner.max_resource = options.max_resource;
  if (options.lag) {
    if (options.pruner == "auto") pruner.name = "median";
    if (options.pruner != "auto" && options.pruner != "median" && options.pruner != "none")
      throw UsageError("TUNE_PRUNER_NOT_DETERMINISTIC",
                       "tune.pruner: " + options.pruner +
                           " makes trials wait for each other, which tune.deterministic does not allow",
                       "choose median or none, or remove tune.deterministic");
    return pruner;
  }
  const bool counts = options.pruner != "auto" && options.pruner != "none" && options.pruner != "median";
  if (counts && options.max_resource < 2)
    throw UsageError(
        "TUNE_EVALUATIONS_UNKNOWN",
        "tune.pruner: " + options.pruner + " needs to know how many evaluations a training has, two at least",
        "give tune.evaluations, or trainer.max_duration and trainer.eval_interval in one unit; or choose median");
  return pruner;
}

// Checks that every generation of a population ends with an evaluation.
void check_population(const SchedulerOptions& options) {
  if (!trains_in_generations(options.sampler)) return;
  const auto generations = options.trials / options.study.population;
  const auto evaluations = static_cast<int64_t>(options.max_resource);
  if (evaluations > 0 && evaluations % generations == 0) return;
  throw UsageError("TUNE_UNEVEN_GENERATIONS",
                   "tune.sampler: " + options.sampler + " divides a training into " + std::to_string(generations) +
                       " generations of equal length, and " +
                       (evaluations > 0 ? "the training has " + std::to_string(evaluations) + " evaluations"
                                        : "the number of evaluations of a training is unknown"),
                   "make the evaluations a multiple of tune.trials / tune.population: give trainer.max_duration and "
                   "trainer.eval_interval in one unit, or tune.evaluations for a command");
}

}  // namespace

SchedulerOptions scheduler_options(const StudyHead& head, const spec::TuneOptions& tune, const tune::Space& space) {
  SchedulerOptions options{study_options(head, space, tune.seed)};
  options.study.population = tune.population;
  options.sampler = head.sampler;
  options.pruner = head.pruner;
  options.max_resource = head.max_resource;
  options.trials = head.trials;
  options.end_early = tune.end_early;
  if (tune.deterministic && !trains_in_generations(head.sampler)) options.lag = tune.parallel.value_or(kDefaultLag);
  return options;
}

TrialScheduler::TrialScheduler(SchedulerOptions options, const std::vector<StudyEvent>& events)
    : options_(std::move(options)),
      study_(options_.study),
      sampler_(tune::make_sampler(options_.sampler, options_.study.directions.size())),
      pruner_(tune::make_pruner(pruner_options(options_))) {
  check_population(options_);
  if (options_.lag) deterministic_.emplace(options_.study, *options_.lag);
  for (const StudyEvent& event : events) observe(event);
}

void TrialScheduler::observe(const StudyEvent& event) {
  apply(study_, event);
  if (starts_process(event)) leader_of_[event.id] = event.leader;
  if (event.kind == Kind::pause || event.kind == Kind::end) leader_of_.erase(event.id);
  idle_in_.reset();
  if (event.kind != Kind::extend) return;
  if (event.trials > options_.trials) options_.end_early = false;  // the user asked for more trials
  options_.trials = event.trials;
}

void TrialScheduler::record(StudyEvent event) {
  if (starts_process(event)) event.leader = options_.leader;
  if (options_.record) options_.record(event);
  observe(event);
}

bool TrialScheduler::over(DrainMode drain) const {
  return leader_of_.empty() && idle_in_ == drain;
}

TrialStart TrialScheduler::start(int64_t id, bool continues, std::string why) {
  running_[id] = {};
  return {id, continues, std::move(why)};
}

// Finds a trial that is running according to the event log but has no process, because its process or its leader died.
std::optional<TrialStart> TrialScheduler::take_over_abandoned() {
  const auto all = leader_of_;
  for (const auto& [id, leader] : all) {
    if (running_.contains(id)) continue;
    const bool own = leader == options_.leader;
    if (!own && options_.abandoned && !options_.abandoned(leader, id)) continue;
    if (prune_if_decided(id)) continue;
    if (!own) record({.kind = Kind::take, .id = id});
    return start(id, true, "it continues from its checkpoint");
  }
  return std::nullopt;
}

std::optional<std::string> TrialScheduler::why_end_early() {
  if (trains_in_generations(options_.sampler)) return std::nullopt;  // all members train to their end
  const auto count = study_.space().count();
  if (count && study_.different_points() >= *count) return "every point of the search space was tried";
  if (!options_.end_early) return std::nullopt;
  return tune::little_to_gain(deterministic_ ? deterministic_->view(study_) : study_);
}

std::optional<TrialStart> TrialScheduler::next(DrainMode drain) {
  if (static_cast<int64_t>(running_.size()) >= options_.slots) return std::nullopt;
  if (auto abandoned = take_over_abandoned()) return abandoned;
  if (idle_in_ == drain) return std::nullopt;
  if (drain == DrainMode::finish_started) return idle_in_ = drain, std::nullopt;
  if (deterministic_ && !deterministic_->ready(study_) && study_.next_id() < options_.trials) return std::nullopt;
  if (study_.next_id() < options_.trials) ended_early_ = why_end_early();
  const bool no_new = drain == DrainMode::no_new_trials || ended_early_ || study_.next_id() >= options_.trials;
  if (const auto promotion = pruner_->promote(study_, no_new)) {
    record({.kind = Kind::resume, .id = promotion->id});
    return start(promotion->id, true, promotion->why);
  }
  if (no_new) return idle_in_ = drain, std::nullopt;
  const tune::Study& visible = deterministic_ ? deterministic_->view(study_) : study_;
  if (!sampler_->ready(visible)) return std::nullopt;
  const tune::Suggestion suggestion = tune::suggest_next(visible, *sampler_);
  const int64_t id = study_.next_id();
  record({.kind = Kind::start, .id = id, .suggestion = suggestion});
  return start(id, false, suggestion.why);
}

tune::Verdict TrialScheduler::judge(const tune::Trial& trial, std::optional<tune::Study>& view) {
  if (!deterministic_) return pruner_->judge(study_, trial);
  if (!view) view = deterministic_->view_of(study_, trial.id);
  for (size_t k = view->trial(trial.id).reports.size(); k < trial.reports.size(); ++k)
    view->report(trial.id, trial.reports[k].step, trial.reports[k].value);
  return tune::make_pruner(pruner_options(options_))->judge(*view, view->trial(trial.id));
}

// In a deterministic study, a decision of the pruner is final. If a trial's process died after the decision and before
// the trial's end, the trial does not start again.
bool TrialScheduler::prune_if_decided(int64_t id) {
  const tune::Trial& trial = study_.trial(id);
  if (!deterministic_ || trial.reports.empty()) return false;
  const bool last = options_.max_resource > 0 && trial.reports.back().step >= options_.max_resource;
  std::optional<tune::Study> view;
  if (last || judge(trial, view).decision == PruneDecision::keep_running) return false;
  end_trial(id, TrialState::pruned, {{trial.reports.back().value}}, "");
  return true;
}

bool TrialScheduler::report(int64_t id, double step, double value, std::string& why) {
  const auto run = running_.find(id);
  if (run == running_.end()) return false;
  const tune::Trial& trial = study_.trial(id);
  if (!trial.reports.empty() && step <= trial.reports.back().step) return false;
  // How far a trial trains between the pruner's decision and its end depends on timing, so these reports are ignored.
  if (deterministic_ && run->second.asked) return false;
  record({.kind = Kind::report, .id = id, .step = step, .value = value});
  deaths_.erase(id);
  const bool last = options_.max_resource > 0 && step >= options_.max_resource;  // the trial ends by itself
  if (run->second.asked || last) return false;
  const tune::Verdict verdict = judge(trial, run->second.view);
  if (verdict.decision == PruneDecision::keep_running) return false;
  run->second.asked = verdict.decision;
  run->second.estimate = verdict.estimate;
  why = verdict.why;
  return true;
}

TrialEnd TrialScheduler::end_trial(int64_t id, TrialState state, Outcome outcome, std::string why) {
  record({.kind = Kind::end, .id = id, .state = state, .outcome = std::move(outcome)});
  return {std::move(why), std::ranges::count(best(), id) > 0, false};
}

bool ended_as_asked(const ProcessEnd& end) {
  return end == ProcessEnd{kResumable, 0} || end == ProcessEnd{128 + SIGTERM, 0};
}

TrialEnd TrialScheduler::end(int64_t id, const ProcessEnd& end, std::optional<Outcome> outcome, bool gave_way) {
  const Run run = running_.at(id);
  running_.erase(id);
  const bool saved = ended_as_asked(end);
  if (outcome && !(deterministic_ && run.asked))
    return end_trial(id, TrialState::complete, *std::move(outcome), "done");
  if (saved && run.asked == PruneDecision::pause) {
    record({.kind = Kind::pause, .id = id, .estimate = run.estimate});
    return {"paused", false, true};
  }
  if (run.asked == PruneDecision::prune) {
    const auto& reports = study_.trial(id).reports;
    return end_trial(id, TrialState::pruned, reports.empty() ? Outcome{} : Outcome{{reports.back().value}}, "pruned");
  }
  const bool by_itself = end.signal == 0 && !saved;
  if (by_itself) return end_trial(id, TrialState::failed, {}, "failed: its process " + to_string(end));
  if (!saved && !gave_way && ++deaths_[id] >= options_.max_deaths)
    return end_trial(id, TrialState::failed, {},
                     "failed: its process died " + std::to_string(deaths_[id]) +
                         " times without an evaluation in between, the last time " + to_string(end));
  return {(saved || gave_way ? "its process ended as asked" : "its process was " + to_string(end)) +
              "; it continues from its checkpoint",
          false, true};
}

TrialEnd TrialScheduler::fail(int64_t id, const std::string& why) {
  running_.erase(id);
  return end_trial(id, TrialState::failed, {}, "failed: " + why);
}

std::vector<int64_t> TrialScheduler::running() const {
  std::vector<int64_t> ids;
  for (const auto& [id, run] : running_) ids.push_back(id);
  return ids;
}

double evaluations_of(const spec::Job& job) {
  if (job.tune.evaluations) return static_cast<double>(*job.tune.evaluations);
  if (job.command.given()) return 0;
  if (job.data.trains_folds() && !leads_folds(job)) return 1;  // the means over the folds, at the end
  const spec::Duration &whole = job.trainer.max_duration, &interval = job.trainer.eval_interval;
  if (interval.unit == spec::Duration::Unit::fraction) return std::floor(1 / interval.amount + 1e-9);
  if (interval.unit != whole.unit || whole.unit == spec::Duration::Unit::seconds) return 0;
  return std::floor(whole.amount / interval.amount + 1e-9);
}

}  // namespace sinew::study
