#include "study/budget.h"

#include <algorithm>
#include <cstdio>

#include "base/number_text.h"

namespace sinew::study {
namespace {

constexpr double kHour = 3600;
// If the pruner pauses trials, new trials start only until this fraction of the budget is used. The rest of the budget
// is for completing the promising trials.
constexpr double kBudgetForNewTrials = 0.8;

}  // namespace

StudyBudget::StudyBudget(const spec::TuneOptions& tune, Clock& clock)
    : clock_(clock),
      began_(clock.monotonic_seconds()),
      time_limit_(tune.seconds),
      price_(tune.price),
      cost_limit_(tune.cost) {}

void StudyBudget::observe(const StudyEvent& event) {
  time_.observe(event);
  if (event.kind == StudyEvent::Kind::extend) cost_limit_ = event.cost.value_or(cost_limit_);
}

void StudyBudget::start(int64_t id) {
  started_.insert(id);
  running_[id] = clock_.monotonic_seconds() - time_.of(id);
}

void StudyBudget::stop(int64_t id) {
  time_.add(id, seconds_of(id));
  running_.erase(id);
}

double StudyBudget::seconds_of(int64_t id) const {
  const auto began = running_.find(id);
  return began == running_.end() ? time_.of(id) : clock_.monotonic_seconds() - began->second;
}

double StudyBudget::training_seconds() const {
  double seconds = time_.seconds();
  for (const auto& [id, began] : running_) seconds += std::max(0.0, seconds_of(id) - time_.of(id));
  return seconds;
}

double StudyBudget::cost_used() const {
  return cost_limit_ > 0 ? training_seconds() / kHour * price_ / cost_limit_ : 0;
}

double StudyBudget::used() const {
  return std::max(time_limit_ > 0 ? elapsed_seconds() / time_limit_ : 0, cost_used());
}

std::vector<std::string> StudyBudget::summary(const std::string& directory, bool more) const {
  if (!(cost_limit_ > 0)) return {};
  const double used = cost_used();
  char text[128];
  std::snprintf(text, sizeof text, "it took %.2f hours of training and cost %.2f", training_seconds() / kHour,
                used * cost_limit_);
  std::vector<std::string> lines = {text};
  if (used < 1 || !more) return lines;
  lines.push_back("tune.cost is spent; to continue with more: sinew tune resume " + directory + " --cost " +
                  rounded_text(2 * cost_limit_));
  return lines;
}

DrainMode drain_mode(double used, bool pauses, bool found) {
  if (used >= 1 && found) return DrainMode::finish_started;
  return used >= (pauses ? kBudgetForNewTrials : 1) ? DrainMode::no_new_trials : DrainMode::none;
}

}  // namespace sinew::study
