#include "tune/rising_choices.h"

#include <algorithm>
#include <cmath>

namespace sinew::tune {
namespace {

constexpr size_t kWindow = 7;  // trials by which the fall of a curve is judged

struct Curve {
  double value = 0;
  std::vector<double> bests;  // after each of its trials that ended
  size_t trials = 0;          // with those that are open
};

std::vector<Curve> curves_of(const Study& study, size_t parameter) {
  std::vector<Curve> curves;
  const auto curve_of = [&](const Trial& trial) -> Curve* {
    const double value = trial.point[parameter];
    if (std::isnan(value)) return nullptr;
    const auto found = std::ranges::find(curves, value, &Curve::value);
    return found != curves.end() ? &*found : &curves.emplace_back(Curve{value, {}});
  };
  for (const int64_t id : study.told()) {
    Curve* const curve = curve_of(study.trial(id));
    if (curve == nullptr) continue;
    const double loss = study.loss(study.trial(id));
    curve->bests.push_back(curve->bests.empty() ? loss : std::min(loss, curve->bests.back()));
    ++curve->trials;
  }
  for (const int64_t id : study.open()) {
    if (Curve* const curve = curve_of(study.trial(id))) ++curve->trials;
  }
  return curves;
}

bool may_come_below(double best, const Curve& curve, double trials_left) {
  if (curve.bests.size() <= kWindow) return true;
  const double now = curve.bests.back(), before = curve.bests[curve.bests.size() - 1 - kWindow];
  if (!std::isfinite(before)) return std::isfinite(now);
  return now - (before - now) / static_cast<double>(kWindow) * trials_left < best;
}

// 0: others depend on it; 2: it depends on another one.
int rank_of(const Space& space, size_t parameter) {
  if (!space[parameter].conditions.empty()) return 2;
  for (size_t other = parameter + 1; other < space.size(); ++other) {
    if (std::ranges::count(space[other].conditions, parameter, &Condition::parent) > 0) return 0;
  }
  return 1;
}

}  // namespace

std::optional<Choice> rising_choice(const Study& study) {
  const auto best = best_trials(study);
  if (best.empty()) return std::nullopt;
  const Trial& ahead = study.trial(best[0]);
  const auto told = static_cast<double>(study.told().size());
  const auto budget = static_cast<double>(study.options().budget);
  const double left = budget > 0 ? std::max(0.0, budget - static_cast<double>(study.begun())) : told;
  std::optional<Choice> next;
  std::pair<int, size_t> least;
  for (size_t i = 0; i < study.space().size(); ++i) {
    if (study.space()[i].kind != Parameter::Kind::categorical) continue;
    for (const Curve& curve : curves_of(study, i)) {
      if (curve.value == ahead.point[i] || !may_come_below(study.loss(ahead), curve, left)) continue;
      const std::pair order{rank_of(study.space(), i), curve.trials};
      if (next && order >= least) continue;
      next = Choice{i, curve.value};
      least = order;
    }
  }
  return next;
}

}  // namespace sinew::tune
