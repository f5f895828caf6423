// One step of population based training, as a pure function: decides which member copies which, and perturbs the copy.
//
// Jaderberg et al., "Population based training of neural networks" (arXiv 1711.09846). A member copies a member of the
// best fifth and perturbs the copy if its own loss is among the worst fifth or not finite. Real numbers change by a
// factor of 0.8 or 1.2, other ordered values move to a neighbour, and any value is sometimes drawn anew.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tune/allowed.h"

namespace sinew::tune {
namespace {

constexpr double kShare = 0.2;   // the fraction of the population that copies, and the fraction that is copied
constexpr double kAnew = 0.25;   // probability of drawing a value anew
constexpr double kFactor = 1.2;  // a real number changes by this factor or by 2 - kFactor

double changed(const Space& space, size_t i, double value, RandomStream& random) {
  const bool anew = random.uniform() < kAnew, up = random.uniform() < 0.5;
  const double even = random.uniform();
  if (anew || !space[i].ordered()) return anew ? space.value_at(i, even) : value;
  if (space.cells(i) == 0) return value * (up ? kFactor : 2 - kFactor);
  const double cell = 1 / static_cast<double>(space.cells(i));
  const double moved = space.value_at(i, space.unit_at(i, value) + (up ? cell : -cell));
  // In a logarithmic range, a move by one cell of the unit interval may be too small to change the rounded value. Then
  // the value itself moves by one step.
  return moved != value ? moved : value + (up ? 1 : -1) * std::max(1.0, space[i].step);
}

}  // namespace

PopulationStep population_step(const Space& space, std::span<const PopulationMember> members, size_t me,
                               RandomStream random) {
  SINEW_CHECK(me < members.size(), me, members.size());
  std::vector<size_t> order(members.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto loss = [&](size_t i) {
    return std::isnan(members[i].loss) ? std::numeric_limits<double>::infinity() : members[i].loss;
  };
  std::ranges::stable_sort(order, {}, loss);
  const auto fifth = static_cast<size_t>(kShare * static_cast<double>(members.size()));
  const size_t group = std::max<size_t>(fifth, members.size() > 1 ? 1 : 0);  // at least one member, unless it is alone
  const auto rank = static_cast<size_t>(std::ranges::find(order, me) - order.begin());
  if (rank < members.size() - group && std::isfinite(loss(me)))
    return {me, members[me].point, "not among the worst fifth: it continues"};
  const size_t from = group > 0 ? order[random.below(group)] : me;
  if (!(loss(from) < loss(me))) return {me, members[me].point, "no member is better: it continues"};
  Point point = first_allowed(space, kAllowedDraws, [&] {
    Point near = members[from].point;
    for (size_t i = 0; i < space.size(); ++i) {
      if (!std::isnan(near[i])) near[i] = changed(space, i, near[i], random);
    }
    space.snap(near);
    return near;
  });
  if (!space.allows(point)) point = members[from].point;
  return {from, std::move(point),
          "its loss is among the worst: it continues from a changed copy of member " + std::to_string(from)};
}

}  // namespace sinew::tune
