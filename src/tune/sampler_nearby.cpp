// Local search: changes a few parameters of one of the best points, by steps that shrink as the study grows. It depends
// on no model, so it makes progress even where a model is wrong. It is an evolution strategy that restarts from the
// best twentieth (Rechenberg 1973).
#include <algorithm>
#include <cmath>

#include "tune/allowed.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

class NearbySampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    RandomStream random = study.random("nearby");
    std::vector<std::pair<double, int64_t>> known;
    for (const Trial& trial : study.trials()) {
      const auto loss = study.known_loss(trial);
      if (loss && Study::violation(trial) <= 0) known.emplace_back(*loss, trial.id);
    }
    const Space& space = study.space();
    if (known.empty()) {
      Point point = first_allowed(space, kAllowedDraws, [&] { return random_point(space, random); });
      return {std::move(point), "nearby", "no trial is known yet: drawn at random", {}};
    }
    std::ranges::sort(known);
    const size_t top = std::max<size_t>(1, known.size() / 20);
    const Trial& start = study.trial(known[random.below(top)].second);
    const std::vector<double> from = space.to_unit(start.point);
    const double reach = std::max(0.02, 0.2 * std::pow(static_cast<double>(known.size()) / 10, -0.7));
    const double chance = std::max(1.5 / static_cast<double>(space.size()), 0.25);
    Point point = first_allowed(space, kAllowedDraws, [&] { return changed(space, from, reach, chance, random); });
    return {
        std::move(point), "nearby", "a small change of trial " + std::to_string(start.id) + ", one of the best", {}};
  }

 private:
  static Point changed(const Space& space, std::vector<double> unit, double reach, double chance,
                       RandomStream& random) {
    const uint64_t always = random.below(space.size());
    for (size_t i = 0; i < space.size(); ++i) {
      const bool changes = random.uniform() < chance || i == always;
      const double normal = random.normal(), even = random.uniform();
      if (std::isnan(unit[i]) || (changes && !space[i].ordered()))
        unit[i] = even;  // the value of an inactive parameter matters only if a change of its parent activates it
      else if (changes)
        unit[i] = moved(space, i, unit[i], reach * normal);
    }
    return space.from_unit(unit);
  }

  // Moves u by `step`, and reflects it at the ends of the unit interval. If the parameter has a grid, a smaller `step`
  // is first enlarged to one cell of the grid. In the outermost cell, the reflection of one cell outwards leaves u in
  // place.
  static double moved(const Space& space, size_t i, double u, double step) {
    if (space.cells(i) > 1) {
      const double cell = 1 / static_cast<double>(space.cells(i));
      if (std::abs(step) < cell) step = std::copysign(cell, step);
    }
    u += step;
    return u < 0 ? std::min(-u, 1.0) : u > 1 ? std::max(2 - u, 0.0) : u;
  }
};

}  // namespace

std::unique_ptr<Sampler> make_nearby() {
  return std::make_unique<NearbySampler>();
}

}  // namespace sinew::tune
