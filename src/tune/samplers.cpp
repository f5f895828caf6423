// The samplers there are, and what holds for every one of them: the user's points first, nothing twice in a finite
// space.
#include "base/error.h"
#include "tune/makers.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

constexpr SamplerMaker kSamplers[] = {
    {"random", make_random, "every point as likely as another"},
    {"grid", make_grid, "a lattice over the space, all of it"},
    {"sobol", make_sobol, "an even cover of the space (scrambled Sobol points)"},
    {"tpe", make_tpe, "where good trials are dense and bad ones are not; any space, any number of trials"},
    {"gp", make_gp, "where a Gaussian process expects the most; constraints and several objectives too"},
};

constexpr int kTries = 32;

// Some point nobody has tried, or none: there is no other.
std::optional<Point> untried_point(const Study& study) {
  RandomStream random = study.random("untried");
  std::vector<double> unit(study.space().size());
  for (int i = 0; i < kTries; ++i) {
    for (double& u : unit) u = random.uniform();
    Point point = study.space().from_unit(unit);
    if (!study.seen(point)) return point;
  }
  if (!study.space().count()) return std::nullopt;
  for (std::optional<Point> point = study.space().first_point(); point; point = study.space().point_after(*point)) {
    if (!study.seen(*point)) return point;
  }
  return std::nullopt;
}

}  // namespace

std::span<const SamplerMaker> samplers() {
  return kSamplers;
}

std::unique_ptr<Sampler> make_sampler(std::string_view name) {
  std::string names;
  for (const SamplerMaker& maker : kSamplers) {
    if (maker.name == name) return maker.make();
    names += (names.empty() ? "" : ", ") + std::string(maker.name);
  }
  throw Error("no sampler '" + std::string(name) + "'", "one of " + names);
}

Suggestion suggest_next(const Study& study, Sampler& sampler) {
  const auto& first = study.options().first;
  if (study.trials().size() < first.size())
    return {first[study.trials().size()], "first", "given to be tried first", {}};
  Suggestion suggestion = sampler.suggest(study);
  if (!study.seen(suggestion.point)) return suggestion;
  if (const auto count = study.space().count(); count && study.different_points() >= *count) {
    suggestion.why += "; every point of the space has been tried";
    return suggestion;
  }
  if (auto point = untried_point(study)) {
    return {*std::move(point), suggestion.by, suggestion.why + "; but that was tried, so another one", {}};
  }
  return suggestion;
}

}  // namespace sinew::tune
