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
  return study.known_loss(study.trials()[static_cast<size_t>(id)]).value_or(std::numeric_limits<double>::infinity());
}

void Ranking::follow(const Study& study) {
  const auto& told = study.told();
  if (study.objectives() > 1) {
    if (taken_ < told.size()) sort_by_rank(study);
  } else {
    const auto before = [&](int32_t a, int32_t b) {
      const double violated_a = Study::violation(study.trials()[static_cast<size_t>(a)]);
      const double violated_b = Study::violation(study.trials()[static_cast<size_t>(b)]);
      return violated_a != violated_b ? violated_a < violated_b : loss_at(study, a) < loss_at(study, b);
    };
    for (; taken_ < told.size(); ++taken_) {
      const auto id = static_cast<int32_t>(told[taken_]);
      ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), id, before), id);
    }
  }
  taken_ = told.size();
  order_ = ended_;
  unknown_.clear();
  std::vector<std::pair<double, int32_t>> reported;
  for (const int64_t id : study.open()) {
    const auto loss = study.objectives() == 1 ? study.known_loss(study.trial(id)) : std::nullopt;
    if (loss)
      reported.emplace_back(*loss, static_cast<int32_t>(id));
    else
      unknown_.push_back(static_cast<int32_t>(id));
  }
  merge(study, std::move(reported));
}

// Trials that have not ended break no constraint that is known.
void Ranking::merge(const Study& study, std::vector<std::pair<double, int32_t>> reported) {
  if (reported.empty()) return;
  std::ranges::sort(reported);
  std::vector<int32_t> both;
  auto ended = ended_.begin();
  const auto first = [&](int32_t id, double loss) {
    return Study::violation(study.trials()[static_cast<size_t>(id)]) <= 0 && loss_at(study, id) <= loss;
  };
  for (const auto& [loss, id] : reported) {
    while (ended != ended_.end() && first(*ended, loss)) both.push_back(*ended++);
    both.push_back(id);
  }
  both.insert(both.end(), ended, ended_.end());
  order_ = std::move(both);
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
  ended_.clear();
  for (const size_t place : places) ended_.push_back(static_cast<int32_t>(told[place]));
}

}  // namespace sinew::tune
