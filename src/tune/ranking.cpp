#include "tune/ranking.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace sinew::tune {
namespace {

// Which of two trials dominates the other; at most one is true.
struct Dominance {
  bool first = false, second = false;
};
Dominance compared(std::span<const double> a, std::span<const double> b) {
  bool less = false, more = false;
  for (size_t k = 0; k < a.size(); ++k) {
    less |= a[k] < b[k];
    more |= a[k] > b[k];
  }
  return {less && !more, more && !less};
}

}  // namespace

double Ranking::loss_at(const Study& study, int32_t id) const {
  return study.known_loss(study.trials()[static_cast<size_t>(id)]).value_or(std::numeric_limits<double>::infinity());
}

void Ranking::follow(const Study& study) {
  if (added_ < study.observed().size()) study.objectives() > 1 ? add_by_dominance(study) : add_by_loss(study);
  added_ = study.observed().size();
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

// Inserts the open trials into the order. They count as feasible, because their constraints are unknown.
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

void Ranking::add_by_loss(const Study& study) {
  const auto before = [&](int32_t a, int32_t b) {
    const double violated_a = Study::violation(study.trials()[static_cast<size_t>(a)]);
    const double violated_b = Study::violation(study.trials()[static_cast<size_t>(b)]);
    return violated_a != violated_b ? violated_a < violated_b : loss_at(study, a) < loss_at(study, b);
  };
  for (const int64_t ended : std::span(study.observed()).subspan(added_)) {
    const auto id = static_cast<int32_t>(ended);
    ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), id, before), id);
  }
}

// Values never change once reported, so each new trial is compared only once with each trial before it.
void Ranking::add_by_dominance(const Study& study) {
  const size_t m = study.objectives();
  for (const int64_t id : std::span(study.observed()).subspan(added_)) {
    const Trial& trial = study.trial(id);
    std::vector<double> mine(m);
    for (size_t k = 0; k < m; ++k) mine[k] = study.loss(trial, k);
    int64_t dominated_by = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const Dominance found = compared(mine, std::span(losses_).subspan(i * m, m));
      ranks_[i].second += found.first;
      dominated_by += found.second;
    }
    losses_.insert(losses_.end(), mine.begin(), mine.end());
    ranks_.emplace_back(Study::violation(trial), dominated_by);
  }
  std::vector<size_t> positions(ranks_.size());
  std::iota(positions.begin(), positions.end(), size_t{0});
  std::ranges::stable_sort(positions, {}, [&](size_t place) { return ranks_[place]; });
  ended_.clear();
  for (const size_t place : positions) ended_.push_back(static_cast<int32_t>(study.observed()[place]));
}

}  // namespace sinew::tune
