// Lists all samplers, and implements the rules that hold for each of them:
// - the user's points come first;
// - no point of a finite space is tried twice;
// - every point satisfies the constraints between parameters;
// - numbers are rounded.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tune/allowed.h"
#include "tune/earlier_studies.h"
#include "tune/makers.h"
#include "tune/rounding.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

constexpr SamplerMaker kSamplers[] = {
    {"auto", make_auto, "the default: combines the other samplers, each as often as it earns"},
    {"random", make_random, "uniformly random points"},
    {"grid", make_grid, "all points of a lattice over the space"},
    {"sobol", make_sobol, "space-filling points (scrambled Sobol points)"},
    {"tpe", make_tpe, "where good trials are dense and bad ones are not; for any space and any number of trials"},
    {"bohb", make_bohb, "like tpe, but of the longest trainings only; for pruners with rungs", true},
    {"cmaes", make_cmaes, "a normal distribution that adapts; for many numbers and many trials", true},
    {"nearby", make_nearby, "small changes of the best points", true},
    {"gp", make_gp,
     "where a Gaussian process expects the largest improvement; also with constraints and several objectives"},
    {"trust_region", make_trust_region, "like gp, but only within a box around the best point"},
    {"pbt", make_pbt,
     "population based training: after each generation the worst members continue from changed copies of the best",
     true},
};

constexpr int kTries = 32, kConstrainedTries = 10'000;

// Changes one parameter: to the next grid step in either direction, or to a random value.
void change_one(const Space& space, RandomStream& random, std::vector<double>& unit) {
  const uint64_t i = random.below(unit.size());
  const double even = random.uniform();
  if (std::isnan(unit[i]) || !space[i].ordered() || space.cells(i) == 0) {
    unit[i] = even;
  } else {
    const double cell = 1 / static_cast<double>(space.cells(i));
    unit[i] += even < 0.5 ? -cell : cell;
    if (unit[i] < 0 || unit[i] > 1) unit[i] = std::clamp(unit[i] + (even < 0.5 ? 2 : -2) * cell, 0.0, 1.0);
  }
}

// Returns an untried point, near `tried` if possible, or nullopt if none was found.
std::optional<Point> untried_point(const Study& study, const Point& tried) {
  const Space& space = study.space();
  RandomStream random = study.random("untried");
  for (int i = 0; i < kTries; ++i) {
    std::vector<double> unit = space.to_unit(tried);
    for (int change = 0; change <= i / 8; ++change) change_one(space, random, unit);
    Point point = space.from_unit(unit);
    if (study.is_new(point)) return point;
  }
  for (int i = 0; i < (space.constraints().empty() ? kTries : kConstrainedTries); ++i) {
    Point point = random_point(space, random);
    if (study.is_new(point)) return point;
  }
  if (!space.count()) return std::nullopt;
  for (std::optional<Point> point = space.first_point(); point; point = space.point_after(*point)) {
    if (study.is_new(*point)) return point;
  }
  return std::nullopt;
}

}  // namespace

std::span<const SamplerMaker> samplers() {
  return kSamplers;
}

std::unique_ptr<Sampler> make_sampler(std::string_view name, size_t objectives) {
  std::string names;
  bool there = false;
  for (const SamplerMaker& maker : kSamplers) {
    const bool fits = objectives <= 1 || !maker.one_objective;
    there |= maker.name == name;
    if (maker.name == name && fits) return maker.make();
    if (fits) names += (names.empty() ? "" : ", ") + std::string(maker.name);
  }
  if (there)
    throw Error("TUNE_ONE_OBJECTIVE_ONLY",
                "the sampler '" + std::string(name) + "' cannot search for several objectives", "use one of " + names);
  throw Error("TUNE_UNKNOWN_SAMPLER", "there is no sampler '" + std::string(name) + "'", "use one of " + names);
}

Suggestion suggest_next(const Study& study, Sampler& sampler) {
  const auto& initial = study.options().initial_points;
  if (study.started() < initial.size()) return {initial[study.started()], "first", "one of the initial points", {}};
  std::optional<Suggestion> earlier = next_of_earlier_studies(study);
  Suggestion suggestion = earlier ? *std::move(earlier) : sampler.suggest(study);
  suggestion.point = rounded(study, suggestion.point);
  if (suggestion.from || study.is_new(suggestion.point)) return suggestion;
  const Comparison* violated = study.space().violated(suggestion.point);
  if (const auto count = study.space().count(); count && study.different_points() >= *count) {
    suggestion.why += "; every point of the space has been tried";
    if (violated != nullptr) suggestion.point = study.space().allowed_point();
    return suggestion;
  }
  const std::string but =
      violated != nullptr ? "; that point violates '" + violated->text() + "'" : "; that point was tried";
  auto point = untried_point(study, suggestion.point);
  if (!point && violated != nullptr) point = study.space().allowed_point();
  if (point) return {rounded(study, *point), suggestion.by, suggestion.why + but + ", so another point near it", {}};
  return suggestion;
}

}  // namespace sinew::tune
