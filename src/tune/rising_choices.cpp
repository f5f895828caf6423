#include "tune/rising_choices.h"

#include <algorithm>
#include <cmath>

namespace sinew::tune {
namespace {

constexpr size_t kWindow = 7;  // the rate of a curve is measured over this many of its newest trials

struct Curve {
  double value = 0;
  std::vector<double> bests;  // the best loss after each trial with a known loss
  size_t trials = 0;          // including trials without a known loss
};

// Makes the curve of each choice. A paused trial counts with its estimated loss (Study::known_loss), because pruning
// pauses most trials of a bad choice.
std::vector<Curve> curves_of(const Study& study, size_t parameter) {
  std::vector<Curve> curves;
  for (const Trial& trial : study.trials()) {
    const double value = trial.point[parameter];
    if (std::isnan(value)) continue;
    auto curve = std::ranges::find(curves, value, &Curve::value);
    if (curve == curves.end()) curve = curves.insert(curves.end(), Curve{value, {}});
    ++curve->trials;
    const auto loss = trial.state == TrialState::running ? std::nullopt : study.known_loss(trial);
    if (loss) curve->bests.push_back(curve->bests.empty() ? *loss : std::min(*loss, curve->bests.back()));
  }
  return curves;
}

bool may_come_below(double best, const Curve& curve, double trials_left) {
  if (curve.bests.size() <= kWindow) return true;
  const double now = curve.bests.back(), before = curve.bests[curve.bests.size() - 1 - kWindow];
  if (!std::isfinite(before)) return std::isfinite(now);
  return now - (before - now) / static_cast<double>(kWindow) * trials_left < best;
}

// Returns 2 if the parameter depends on another parameter, 0 if others depend on it, and else 1.
int rank_of(const Space& space, size_t parameter) {
  if (!space[parameter].conditions.empty()) return 2;
  for (size_t other = parameter + 1; other < space.size(); ++other) {
    if (std::ranges::count(space[other].conditions, parameter, &Condition::parent) > 0) return 0;
  }
  return 1;
}

}  // namespace

std::vector<Choice> rising_choices(const Study& study) {
  const auto best = best_trials(study);
  if (best.empty()) return {};
  const Trial& ahead = study.trial(best[0]);
  const auto ended = static_cast<double>(study.observed().size());
  const auto budget = static_cast<double>(study.options().budget);
  const double left = budget > 0 ? std::max(0.0, budget - static_cast<double>(study.started())) : ended;
  struct Ranked {
    std::pair<int, size_t> order;
    Choice choice;
  };
  std::vector<Ranked> ranked;
  const auto is_searched = [&](size_t parameter, double value) {
    return ahead.point[parameter] == value || std::ranges::any_of(ranked, [&](const Ranked& one) {
             return one.choice.parameter == parameter && one.choice.value == value;
           });
  };
  for (size_t i = 0; i < study.space().size(); ++i) {
    const Parameter& parameter = study.space()[i];
    if (parameter.kind != Parameter::Kind::categorical) continue;
    const bool searched = std::ranges::all_of(parameter.conditions, [&](const Condition& condition) {
      return std::ranges::any_of(condition.allowed, [&](double value) { return is_searched(condition.parent, value); });
    });
    if (!searched) continue;
    for (const Curve& curve : curves_of(study, i)) {
      if (curve.value == ahead.point[i] || !may_come_below(study.loss(ahead), curve, left)) continue;
      ranked.push_back({{rank_of(study.space(), i), curve.trials}, {i, curve.value}});
    }
  }
  std::ranges::stable_sort(ranked, {}, &Ranked::order);
  std::vector<Choice> choices;
  for (const Ranked& one : ranked) choices.push_back(one.choice);
  return choices;
}

}  // namespace sinew::tune
