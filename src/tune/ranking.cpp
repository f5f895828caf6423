#include "tune/ranking.h"

#include <algorithm>
#include <cmath>

namespace sinew::tune {
namespace {

bool dominates(const Study& study, const Trial& a, const Trial& b) {
  bool better = false;
  for (size_t k = 0; k < study.objectives(); ++k) {
    const double x = study.loss(a, k), y = study.loss(b, k);
    if (x > y) return false;
    better |= x < y;
  }
  return better;
}

}  // namespace

double Ranking::loss_at(const Study& study, int32_t id) const {
  const Trial& trial = study.trials()[static_cast<size_t>(id)];
  if (trial.values.empty() && trial.state == TrialState::pruned && !trial.reports.empty()) {
    return study.loss(trial.reports.back());
  }
  return study.loss(trial);
}

void Ranking::follow(const Study& study) {
  const auto& told = study.told();
  if (study.objectives() > 1) {
    if (taken_ < told.size()) sort_by_rank(study);
    taken_ = told.size();
    return;
  }
  const auto before = [&](int32_t a, int32_t b) {
    const Trial &x = study.trials()[static_cast<size_t>(a)], &y = study.trials()[static_cast<size_t>(b)];
    const double violated_x = Study::violation(x), violated_y = Study::violation(y);
    if (violated_x != violated_y) return violated_x < violated_y;
    return loss_at(study, a) < loss_at(study, b);
  };
  for (; taken_ < told.size(); ++taken_) {
    const auto id = static_cast<int32_t>(told[taken_]);
    order_.insert(std::upper_bound(order_.begin(), order_.end(), id, before), id);
  }
}

// All against all: several objectives come with hundreds of trials, not with many thousands.
void Ranking::sort_by_rank(const Study& study) {
  const auto& told = study.told();
  std::vector<std::pair<double, double>> keys(told.size());  // violation, then how many dominate it
  for (size_t i = 0; i < told.size(); ++i) {
    const Trial& trial = study.trial(told[i]);
    keys[i] = {Study::violation(trial), 0};
    for (const int64_t other : told) keys[i].second += dominates(study, study.trial(other), trial);
  }
  std::vector<size_t> places(told.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::ranges::stable_sort(places, [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  order_.clear();
  for (const size_t place : places) order_.push_back(static_cast<int32_t>(told[place]));
}

}  // namespace sinew::tune
