// Translates earlier studies to the space of a new one, and suggests their best points.
#include "tune/earlier_studies.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinew::tune {
namespace {

constexpr size_t kMostBest = 5;
constexpr double kNearly = 0.01;  // points that differ by less than this fraction of each range count as the same

// Returns, for each parameter of the new space, its index in the old space. The index is nullopt if the old space does
// not have the parameter.
std::vector<std::optional<size_t>> places_of(const Space& space, const Space& then) {
  std::vector<std::optional<size_t>> places(space.size());
  for (size_t i = 0; i < space.size(); ++i) {
    for (size_t j = 0; j < then.size(); ++j) {
      if (then[j].name == space[i].name && then[j].numeric() == space[i].numeric()) places[i] = j;
    }
  }
  return places;
}

// Returns the number that stands for this value in points of the new space, or nullopt if the new space does not
// contain the value.
std::optional<double> same_value(const Parameter& parameter, const Parameter& then, double value) {
  if (!parameter.numeric()) {
    const auto choice = std::ranges::find(parameter.choices, then.choices[static_cast<size_t>(value)]);
    if (choice == parameter.choices.end()) return std::nullopt;
    return static_cast<double>(choice - parameter.choices.begin());
  }
  if (value < parameter.low || value > parameter.high) return std::nullopt;
  return value;
}

bool nearly_tried(const Study& study, const Point& point) {
  const auto unit = study.space().to_unit(point);
  return std::ranges::any_of(study.trials(), [&](const Trial& trial) {
    const auto other = study.space().to_unit(trial.point);
    for (size_t i = 0; i < unit.size(); ++i) {
      if (std::isnan(unit[i]) != std::isnan(other[i]) || std::abs(unit[i] - other[i]) > kNearly) return false;
    }
    return true;
  });
}

}  // namespace

EarlierStudy make_earlier_study(const Space& space, const Study& then, std::string name) {
  EarlierStudy earlier{std::move(name), {}, {}};
  const auto places = places_of(space, then.space());
  if (std::ranges::none_of(places, [](const auto& place) { return place.has_value(); })) return earlier;
  for (const Trial& trial : then.trials()) {
    const auto loss = trial.state == TrialState::running ? std::nullopt : then.known_loss(trial);
    if (!loss) continue;
    std::vector<double> unit(space.size(), kInactive);
    bool inside = true;
    for (size_t i = 0; i < space.size(); ++i) {
      if (!places[i] || std::isnan(trial.point[*places[i]])) continue;
      const auto value = same_value(space[i], then.space()[*places[i]], trial.point[*places[i]]);
      inside &= value.has_value();
      if (value) unit[i] = space.unit_at(i, *value);
    }
    if (!inside) continue;
    earlier.points.push_back(std::move(unit));
    earlier.losses.push_back(Study::violation(trial) > 0 ? std::numeric_limits<double>::infinity() : *loss);
  }
  // A study without any finite loss teaches nothing, so it becomes empty.
  if (std::ranges::none_of(earlier.losses, [](double loss) { return std::isfinite(loss); }))
    return {earlier.name, {}, {}};
  return earlier;
}

std::optional<Suggestion> next_of_earlier_studies(const Study& study) {
  std::vector<const EarlierStudy*> studies;
  for (const EarlierStudy& earlier : study.options().earlier) {
    if (!earlier.losses.empty() && studies.size() < kMostBest) studies.push_back(&earlier);
  }
  const size_t place = study.started() - std::min(study.started(), study.options().initial_points.size());
  if (place >= studies.size()) return std::nullopt;
  const EarlierStudy& earlier = *studies[place];
  std::vector<size_t> order(earlier.losses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return earlier.losses[i]; });
  for (const size_t i : order) {
    // This trial and all that follow in this order failed or were infeasible.
    if (!std::isfinite(earlier.losses[i])) break;
    Point point = study.space().from_unit(earlier.points[i]);
    // Two earlier studies may have found nearly the same point. This study may also have other constraints.
    if (nearly_tried(study, point) || !study.space().allows(point)) continue;
    return Suggestion{std::move(point),
                      "earlier",
                      "the best point of an earlier study" + (earlier.name.empty() ? "" : ", " + earlier.name),
                      {}};
  }
  return std::nullopt;
}

}  // namespace sinew::tune
