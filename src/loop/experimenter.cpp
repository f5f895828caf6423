#include "loop/experimenter.h"

#include <utility>

namespace sinew::loop {
namespace {

constexpr int64_t kKnownSteps = 5;  // the first steps of a run are slower than later ones

}  // namespace

std::optional<int64_t> Experimenter::due(const Pace& steps) {
  if (!wanted_ || steps.count() < kKnownSteps) return std::nullopt;
  wanted_ = false;
  return Experiment::window_for(steps.mean());
}

void Experimenter::begin(int64_t window, bool alone) {
  std::vector<Condition> conditions;
  for (size_t i = 0; i < kConditions; ++i) {
    const auto condition = static_cast<Condition>(i);
    can_use_[i] = trainer_.can_use(condition);
    if (can_use_[i] || !alone) conditions.push_back(condition);
  }
  experiment_.emplace(conditions, std::max<int64_t>(1, window));
}

void Experimenter::before_step() {
  if (!experiment_) return;
  const Condition condition = experiment_->next();
  trainer_.use(can_use_[static_cast<size_t>(condition)] ? condition : Condition::usual, false);
  began_ = clock_.monotonic_seconds();
}

bool Experimenter::after_step() {
  if (!experiment_) return false;
  experiment_->after(clock_.monotonic_seconds() - began_);
  if (!experiment_->done()) return false;
  results_ = experiment_->results();
  std::erase_if(results_, [&](const ConditionTime& found) { return !can_use_[static_cast<size_t>(found.condition)]; });
  experiment_.reset();
  trainer_.use(Condition::usual, true);
  return true;
}

}  // namespace sinew::loop
