#include "loop/experimenter.h"

#include <utility>

namespace sinew::loop {
namespace {

constexpr int64_t kKnownSteps = 5;  // the first steps of a run are slower than later ones

size_t index_of(Condition condition) {
  return static_cast<size_t>(condition);
}

}  // namespace

Experimenter::Experimenter(bool wanted, Trainer& trainer, Accounts* accounts, const Clock& clock)
    : trainer_(trainer), accounts_(accounts), clock_(clock) {
  if (wanted) ask({.kind = ControlEntry::Kind::experiment, .reason = "what limits a step"});
}

void Experimenter::ask(const ControlEntry& request) {
  asked_ = request;
}

std::optional<ControlEntry> Experimenter::due(const Pace& steps) {
  if (!asked_ || steps.count() < kKnownSteps) return std::nullopt;
  asked_->value = static_cast<double>(Experiment::window_for(steps.mean()));
  return std::exchange(asked_, std::nullopt);
}

void Experimenter::begin(int64_t window, int64_t computing, int64_t batch_size) {
  const bool alone = computing <= 1;
  computing_ = computing;
  batch_size_ = batch_size;
  if (accounts_ != nullptr) accounts_->pause();
  std::vector<Condition> conditions;
  for (size_t i = 0; i < kConditions; ++i) {
    const auto condition = static_cast<Condition>(i);
    if (!alone && condition == Condition::samples_ready) continue;
    can_use_[i] = trainer_.can_use(condition);
    if (can_use_[i] || !alone) conditions.push_back(condition);
  }
  experiment_.emplace(conditions, std::max<int64_t>(1, window));
}

bool Experimenter::before_step(int64_t computing, int64_t batch_size) {
  if (!experiment_) return true;
  if (computing != computing_ || batch_size != batch_size_) {
    end();
    return false;
  }
  const Condition next = experiment_->next();
  const Condition condition = can_use_[index_of(next)] ? next : Condition::usual;
  if (!trainer_.use(condition)) can_use_[index_of(condition)] = false;
  began_ = clock_.monotonic_seconds();
  return true;
}

bool Experimenter::after_step() {
  if (!experiment_) return false;
  experiment_->after(clock_.monotonic_seconds() - began_);
  if (!experiment_->done()) return false;
  results_ = experiment_->results();
  std::erase_if(results_, [&](const ConditionTime& found) { return !can_use_[index_of(found.condition)]; });
  end();
  return true;
}

void Experimenter::end() {
  experiment_.reset();
  trainer_.use(Condition::usual);
  trainer_.end_conditions();
  if (accounts_ != nullptr) accounts_->go_on();
}

}  // namespace sinew::loop
