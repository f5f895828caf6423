// Keeps the trial history of a study, and computes the losses and violations that follow from it.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

std::string named(int64_t id) {
  return "trial " + std::to_string(id);
}

}  // namespace

Study::Study(StudyOptions options) : options_(std::move(options)) {
  if (options_.directions.empty())
    throw Error("TUNE_NO_OBJECTIVE", "the study has no objective", "give at least one direction: [\"minimize\"]");
  extend(options_.budget);
  for (Point& point : options_.initial_points) {
    if (const auto problem = space().problem_of(point))
      throw Error("TUNE_BAD_POINT", "an initial point is not in the search space: " + *problem,
                  "give every active parameter a value that the space has");
  }
}

void Study::extend(int64_t budget) {
  if (budget < 0) throw Error("TUNE_BAD_BUDGET", "the budget is below 0 trials", "leave it out if it is unknown");
  options_.budget = budget;
}

int64_t Study::start(Suggestion suggestion) {
  const auto problem = space().problem_of(suggestion.point);
  SINEW_CHECK(!problem, suggestion.by, problem.value_or(""));
  const int64_t id = next_id();
  SINEW_CHECK(!suggestion.from || (*suggestion.from >= 0 && *suggestion.from < id), id, suggestion.by);
  seen_.insert(hash_of(suggestion.point));
  Trial& trial = trials_.emplace_back();
  trial.id = id;
  trial.point = std::move(suggestion.point);
  trial.by = std::move(suggestion.by);
  trial.why = std::move(suggestion.why);
  trial.sampler_state = std::move(suggestion.sampler_state);
  trial.gain = suggestion.gain;
  trial.from = suggestion.from;
  open_.push_back(id);
  return id;
}

void Study::prefill(Point point, TrialState state, std::vector<double> values, std::vector<double> constraints) {
  SINEW_CHECK(started() == 0, started());
  tell(start({std::move(point), "prefill", "reported before the study began", {}}), state, std::move(values),
       std::move(constraints));
  ++prefilled_;
}

const Trial& Study::trial(int64_t id) const {
  if (id < 0 || id >= next_id())
    throw Error("TUNE_UNKNOWN_TRIAL", "there is no " + named(id), "use an id that an ask returned");
  return trials_[static_cast<size_t>(id)];
}

Trial& Study::open_trial(int64_t id) {
  Trial& found = trials_[static_cast<size_t>(trial(id).id)];
  if (found.state != TrialState::running && found.state != TrialState::paused) {
    throw Error("TUNE_TRIAL_ENDED", named(id) + " has already ended", "report the result of every trial once");
  }
  return found;
}

void Study::close(Trial& trial) {
  open_.erase(std::ranges::lower_bound(open_, trial.id));
  observed_.push_back(trial.id);
}

void Study::tell(int64_t id, TrialState state, std::vector<double> values, std::vector<double> constraints) {
  Trial& trial = open_trial(id);
  SINEW_CHECK(state == TrialState::complete || state == TrialState::pruned || state == TrialState::failed);
  if (state == TrialState::failed && !values.empty())
    throw Error("TUNE_BAD_VALUES", named(id) + " failed, so it has no value",
                "leave the value out, or report the trial as pruned");
  if (values.size() != objectives() && (state == TrialState::complete || !values.empty())) {
    throw Error("TUNE_BAD_VALUES",
                named(id) + " has " + std::to_string(values.size()) + " values, but the study has " +
                    std::to_string(objectives()) + " objectives",
                "give one value for each objective");
  }
  trial.state = state;
  trial.values = std::move(values);
  trial.constraints = std::move(constraints);
  close(trial);
}

void Study::report(int64_t id, double step, double value) {
  Trial& trial = open_trial(id);
  if (trial.state != TrialState::running)
    throw Error("TUNE_TRIAL_PAUSED", named(id) + " is paused and cannot report a value",
                "resume it first: ask names paused trials that continue");
  if (!std::isfinite(step))
    throw Error("TUNE_BAD_STEP", named(id) + ": the step of a report must be a finite number", "count steps from 1");
  if (!trial.reports.empty() && !(step > trial.reports.back().step)) {
    throw Error("TUNE_BAD_STEP", named(id) + ": the step of a report must be above the last one",
                "report every step once, in ascending order");
  }
  trial.reports.push_back({step, value});
}

void Study::pause(int64_t id, std::optional<double> estimate) {
  Trial& trial = open_trial(id);
  trial.state = TrialState::paused;
  if (estimate) trial.estimate = estimate;
}

void Study::resume(int64_t id) {
  open_trial(id).state = TrialState::running;
}

void Study::retry(int64_t id) {
  Trial& found = trials_[static_cast<size_t>(trial(id).id)];
  if (found.state != TrialState::failed)
    throw Error("TUNE_TRIAL_ENDED", named(id) + " has not failed, so it cannot be tried again",
                "retry only trials that failed");
  found.state = TrialState::running;
  found.values.clear();
  found.constraints.clear();
  std::erase(observed_, id);
  open_.insert(std::ranges::lower_bound(open_, id), id);
}

double Study::loss(const Trial& trial, size_t objective) const {
  if (objective >= trial.values.size() || std::isnan(trial.values[objective])) {
    return std::numeric_limits<double>::infinity();
  }
  const double value = trial.values[objective];
  return options_.directions[objective] == Direction::minimize ? value : -value;
}

double Study::loss(const Report& report) const {
  if (std::isnan(report.value)) return std::numeric_limits<double>::infinity();
  return options_.directions[0] == Direction::minimize ? report.value : -report.value;
}

std::optional<double> Study::known_loss(const Trial& trial) const {
  const bool ended = trial.state == TrialState::complete || trial.state == TrialState::failed;
  if (ended || !trial.values.empty()) return loss(trial);
  if (trial.estimate) {
    return std::isnan(*trial.estimate) ? std::nullopt : std::optional(loss(Report{0, *trial.estimate}));
  }
  if (!trial.reports.empty()) return loss(trial.reports.back());
  if (trial.state == TrialState::pruned) return loss(trial);
  return std::nullopt;
}

double Study::violation(const Trial& trial) {
  const bool worthless = !std::ranges::all_of(trial.values, [](double value) { return std::isfinite(value); });
  if (trial.state == TrialState::failed || worthless) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const double constraint : trial.constraints) {
    if (std::isnan(constraint)) return std::numeric_limits<double>::infinity();
    sum += std::max(constraint, 0.0);
  }
  return sum;
}

RandomKey Study::key(std::string_view purpose) const {
  return derive(random_key({options_.seed}), purpose);
}

RandomStream Study::random(std::string_view purpose) const {
  return RandomStream(derive(key(purpose), trials_.size()));
}

}  // namespace sinew::tune
