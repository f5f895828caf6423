#include "study/scheduler.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/exit_code.h"

namespace sinew::study {

using tune::PruneDecision;
using tune::TrialState;
using Kind = StudyEvent::Kind;

namespace {

tune::PrunerOptions pruner_options(const TuningOptions& options) {
  tune::PrunerOptions pruner;
  pruner.name = options.pruner;
  pruner.max_resource = options.max_resource;
  if (options.lag) {
    if (options.pruner == "auto") pruner.name = "median";
    if (options.pruner != "auto" && options.pruner != "median" && options.pruner != "none")
      throw UsageError("tune.pruner: " + options.pruner +
                           " lets trials wait for one another, and tune.deterministic "
                           "can not have that",
                       "choose median or none, or leave tune.deterministic out");
    return pruner;
  }
  const bool counts = options.pruner != "auto" && options.pruner != "none" && options.pruner != "median";
  if (counts && options.max_resource < 2)
    throw UsageError(
        "tune.pruner: " + options.pruner + " needs to know how many evaluations a training has, two at least",
        "give tune.evaluations, or trainer.max_duration and trainer.eval_interval in one unit; or choose median");
  return pruner;
}

// Every part of a population's trainings ends with an evaluation.
void check_population(const TuningOptions& options) {
  if (!trains_in_parts(options.sampler)) return;
  const auto parts = options.trials / options.study.population;
  const auto evaluations = static_cast<int64_t>(options.max_resource);
  if (evaluations > 0 && evaluations % parts == 0) return;
  throw UsageError("tune.sampler: " + options.sampler + " trains in " + std::to_string(parts) + " parts, and " +
                       (evaluations > 0 ? "a whole training has " + std::to_string(evaluations) + " evaluations"
                                        : "how many evaluations a whole training has is not known"),
                   "tune.trials by tune.population parts have as many evaluations each: give trainer.max_duration and "
                   "trainer.eval_interval in one unit; or tune.evaluations, of a command");
}

}  // namespace

TuningOptions tuning_options(const StudyHead& head, const spec::TuneOptions& tune, const tune::Space& space) {
  TuningOptions options{study_options(head, space, tune.seed)};
  options.study.population = tune.population;
  options.sampler = head.sampler;
  options.pruner = head.pruner;
  options.max_resource = head.max_resource;
  options.trials = head.trials;  // events tell of more
  options.end_early = tune.end_early;
  if (tune.deterministic && !trains_in_parts(head.sampler)) options.lag = tune.parallel.value_or(kLag);
  return options;
}

Tuning::Tuning(TuningOptions options, const std::vector<StudyEvent>& events)
    : options_(std::move(options)),
      study_(options_.study),
      sampler_(tune::make_sampler(options_.sampler, options_.study.directions.size())),
      pruner_(tune::make_pruner(pruner_options(options_))) {
  check_population(options_);
  if (options_.lag) in_order_.emplace(options_.study, *options_.lag);
  for (const StudyEvent& event : events) told(event);
}

void Tuning::told(const StudyEvent& event) {
  apply(study_, event);
  if (begins_life(event)) process_[event.id] = event.process;
  if (event.kind == Kind::pause || event.kind == Kind::end) process_.erase(event.id);
  in_vain_.reset();
  if (event.kind != Kind::extend) return;
  if (event.trials > options_.trials) options_.end_early = false;  // they were asked for by name
  options_.trials = event.trials;
}

void Tuning::record(StudyEvent event) {
  if (begins_life(event)) event.process = options_.process;
  if (options_.record) options_.record(event);
  told(event);
}

bool Tuning::over(Hurry hurry) const {
  return process_.empty() && in_vain_ == hurry;
}

TrialStart Tuning::begin(int64_t id, bool again, std::string why) {
  running_[id] = {};
  return {id, again, std::move(why)};
}

// A trial that is running in the record and in no process, of this life or of one that is gone.
std::optional<TrialStart> Tuning::one_left_alone() {
  const auto all = process_;
  for (const auto& [id, process] : all) {
    if (running_.contains(id)) continue;
    const bool own = process == options_.process;
    if (!own && options_.abandoned && !options_.abandoned(process, id)) continue;
    if (settled(id)) continue;
    if (!own) record({.kind = Kind::take, .id = id});
    return begin(id, true, "it goes on from its checkpoint");
  }
  return std::nullopt;
}

// A point that was tried would be the same training once more.
std::optional<std::string> Tuning::why_end_early() {
  if (trains_in_parts(options_.sampler)) return std::nullopt;  // its members train to their end
  const auto count = study_.space().count();
  if (count && study_.different_points() >= *count) return "every point of the search was tried";
  if (!options_.end_early) return std::nullopt;
  return tune::little_to_gain(in_order_ ? in_order_->view(study_) : study_);
}

std::optional<TrialStart> Tuning::next(Hurry hurry) {
  if (static_cast<int64_t>(running_.size()) >= options_.parallel) return std::nullopt;
  if (auto left = one_left_alone()) return left;
  if (in_vain_ == hurry) return std::nullopt;
  if (hurry == Hurry::over) return in_vain_ = hurry, std::nullopt;
  if (in_order_ && !in_order_->ready(study_) && study_.next_id() < options_.trials) return std::nullopt;
  if (study_.next_id() < options_.trials) ended_early_ = why_end_early();
  const bool no_more = hurry == Hurry::no_new || ended_early_ || study_.next_id() >= options_.trials;
  if (const auto promotion = pruner_->promote(study_, no_more)) {
    record({.kind = Kind::resume, .id = promotion->id});
    return begin(promotion->id, true, promotion->why);
  }
  if (no_more) return in_vain_ = hurry, std::nullopt;
  const tune::Study& known = in_order_ ? in_order_->view(study_) : study_;
  if (!sampler_->ready(known)) return std::nullopt;
  const tune::Suggestion suggestion = tune::suggest_next(known, *sampler_);
  const int64_t id = study_.next_id();
  record({.kind = Kind::start, .id = id, .suggestion = suggestion});
  return begin(id, false, suggestion.why);
}

tune::Verdict Tuning::judged(const tune::Trial& trial, std::optional<tune::Study>& view) {
  if (!in_order_) return pruner_->judge(study_, trial);
  if (!view) view = in_order_->view_of(study_, trial.id);
  for (size_t k = view->trial(trial.id).reports.size(); k < trial.reports.size(); ++k)
    view->report(trial.id, trial.reports[k].step, trial.reports[k].value);
  return tune::make_pruner(pruner_options(options_))->judge(*view, view->trial(trial.id));
}

// In a deterministic study a verdict stands: a trial that died between it and its end is not begun again.
bool Tuning::settled(int64_t id) {
  const tune::Trial& trial = study_.trial(id);
  if (!in_order_ || trial.reports.empty()) return false;
  const bool last = options_.max_resource > 0 && trial.reports.back().step >= options_.max_resource;
  std::optional<tune::Study> view;
  if (last || judged(trial, view).decision == PruneDecision::keep_running) return false;
  end_trial(id, TrialState::pruned, {{trial.reports.back().value}}, "");
  return true;
}

bool Tuning::reported(int64_t id, double step, double value, std::string& why) {
  const auto life = running_.find(id);
  if (life == running_.end()) return false;
  const tune::Trial& trial = study_.trial(id);
  if (!trial.reports.empty() && step <= trial.reports.back().step) return false;
  if (in_order_ && life->second.asked) return false;  // how far it came until it ended is a matter of timing
  record({.kind = Kind::report, .id = id, .step = step, .value = value});
  deaths_.erase(id);
  const bool last = options_.max_resource > 0 && step >= options_.max_resource;  // it ends by itself
  if (life->second.asked || last) return false;
  const tune::Verdict verdict = judged(trial, life->second.view);
  if (verdict.decision == PruneDecision::keep_running) return false;
  life->second.asked = verdict.decision;
  life->second.estimate = verdict.estimate;
  why = verdict.why;
  return true;
}

TrialOver Tuning::end_trial(int64_t id, TrialState state, Outcome outcome, std::string why) {
  record({.kind = Kind::end, .id = id, .state = state, .outcome = std::move(outcome)});
  return {std::move(why), std::ranges::count(best(), id) > 0, false};
}

bool left_as_asked(const ProcessEnd& end) {
  return end == ProcessEnd{kResumable, 0} || end == ProcessEnd{128 + SIGTERM, 0};
}

TrialOver Tuning::ended(int64_t id, const ProcessEnd& end, std::optional<Outcome> outcome, bool gave_way) {
  const Life life = running_.at(id);
  running_.erase(id);
  const bool saved = left_as_asked(end);
  if (outcome && !(in_order_ && life.asked)) return end_trial(id, TrialState::complete, *std::move(outcome), "done");
  if (saved && life.asked == PruneDecision::pause) {
    record({.kind = Kind::pause, .id = id, .estimate = life.estimate});
    return {"paused", false, true};
  }
  if (life.asked == PruneDecision::prune) {
    const auto& reports = study_.trial(id).reports;
    return end_trial(id, TrialState::pruned, reports.empty() ? Outcome{} : Outcome{{reports.back().value}}, "stopped");
  }
  const bool by_itself = end.signal == 0 && !saved;
  if (by_itself) return end_trial(id, TrialState::failed, {}, "failed: " + to_string(end));
  if (!saved && !gave_way && ++deaths_[id] >= options_.most_deaths)
    return end_trial(id, TrialState::failed, {},
                     "failed: it died " + std::to_string(deaths_[id]) + " times without an evaluation, the last time " +
                         to_string(end));
  return {(saved || gave_way ? "told to end" : to_string(end)) + "; it goes on from its checkpoint", false, true};
}

TrialOver Tuning::failed(int64_t id, const std::string& why) {
  running_.erase(id);
  return end_trial(id, TrialState::failed, {}, "failed: " + why);
}

std::vector<int64_t> Tuning::running() const {
  std::vector<int64_t> ids;
  for (const auto& [id, life] : running_) ids.push_back(id);
  return ids;
}

double evaluations_of(const spec::Job& job) {
  if (job.tune.evaluations) return static_cast<double>(*job.tune.evaluations);
  if (job.command.given()) return 0;
  const spec::Duration &whole = job.trainer.max_duration, &interval = job.trainer.eval_interval;
  if (interval.unit == spec::Duration::Unit::fraction) return std::floor(1 / interval.amount + 1e-9);
  if (interval.unit != whole.unit || whole.unit == spec::Duration::Unit::seconds) return 0;
  return std::floor(whole.amount / interval.amount + 1e-9);
}

}  // namespace sinew::study
