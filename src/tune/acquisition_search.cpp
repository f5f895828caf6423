#include "tune/acquisition_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/lbfgs.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int64_t kFine = 24;        // parameters with at least this many grid steps also climb by gradient
constexpr double kMostScales = 0.3;  // the largest perturbation, as a fraction of the range of a parameter
constexpr double kLeastScales = 0.005;
constexpr int64_t kMostChoices = 64;  // a climb tries at most this many choices of a category

std::span<const double> as_span(const VectorXd& x) {
  return {x.data(), static_cast<size_t>(x.size())};
}

// The region to search: the box of SearchOptions, with the moves that each parameter allows.
class SearchSpace {
 public:
  SearchSpace(const Study& study, const SearchOptions& options)
      : study_(study), space_(study.space()), options_(options) {
    const auto d = static_cast<Index>(space_.size());
    low_ = options.low.size() == d ? options.low : VectorXd::Zero(d);
    high_ = options.high.size() == d ? options.high : VectorXd::Ones(d);
  }

  const Space& space() const { return space_; }
  const SearchOptions& options() const { return options_; }
  size_t size() const { return space_.size(); }
  double low(Index axis) const { return low_[axis]; }
  double high(Index axis) const { return high_[axis]; }

  bool is_category(size_t i) const { return space_[i].kind == Parameter::Kind::categorical; }
  bool is_kept(size_t i) const { return options_.within && options_.within->parameter == i; }
  bool climbs_by_slope(size_t i) const {
    return !is_category(i) && (space_.cells(i) == 0 || space_.cells(i) >= kFine) && !is_parent(i);
  }

  // Returns the valid point nearest to `unit`. Returns nullopt if that point was tried before or violates a constraint.
  std::optional<Candidate> settled(const VectorXd& unit) const {
    Point point = space_.from_unit(as_span(options_.within ? with_choice(unit) : unit));
    if (options_.within && !options_.within->of(point))
      return std::nullopt;  // at this point, a condition makes that category inactive
    if (!study_.is_new(point)) return std::nullopt;
    VectorXd x = row_of(space_, point);
    return Candidate{std::move(point), std::move(x), 0};
  }

 private:
  VectorXd with_choice(VectorXd unit) const {
    const auto [parameter, value] = *options_.within;
    unit[static_cast<Index>(parameter)] = space_.unit_at(parameter, value);
    return unit;
  }

  // Returns whether another parameter has a condition on parameter i. If so, parameter i moves by grid steps only,
  // because the function jumps where other parameters become active.
  bool is_parent(size_t i) const {
    for (size_t j = i + 1; j < space_.size(); ++j) {
      for (const Condition& condition : space_[j].conditions) {
        if (condition.parent == i) return true;
      }
    }
    return false;
  }

  const Study& study_;
  const Space& space_;
  const SearchOptions& options_;
  VectorXd low_, high_;
};

// Draws the candidates: half of them uniformly at random, the other half as perturbed copies of the centres. If there
// are no centres, all candidates are random.
class Draws {
 public:
  Draws(const SearchSpace& space, RandomStream& random) : space_(space), random_(random) {}

  std::vector<Candidate> candidates() {
    std::vector<Candidate> all;
    const auto add = [&](const VectorXd& unit) {
      if (auto one = space_.settled(unit)) all.push_back(*std::move(one));
    };
    const std::vector<VectorXd>& centres = space_.options().centres;
    VectorXd unit(static_cast<Index>(space_.size()));
    for (int k = 0; k < space_.options().candidates; ++k) {
      if (k % 2 == 0 && !centres.empty()) {
        add(perturbed(centres[static_cast<size_t>(random_.below(centres.size()))]));
      } else {
        for (size_t i = 0; i < space_.size(); ++i) unit[static_cast<Index>(i)] = anywhere(i);
        add(unit);
      }
    }
    return all;
  }

 private:
  double anywhere(size_t i) {
    const auto axis = static_cast<Index>(i);
    return space_.is_category(i) ? random_.uniform() : random_.uniform(space_.low(axis), space_.high(axis));
  }

  VectorXd perturbed(const VectorXd& centre) {
    const double scale = kLeastScales * std::pow(kMostScales / kLeastScales, random_.uniform());
    const size_t d = space_.size();
    const double chance = std::max(std::min(1.0, 2.0 / static_cast<double>(d)), random_.uniform());
    VectorXd unit(centre.size());
    for (size_t i = 0; i < d; ++i) {
      const auto axis = static_cast<Index>(i);
      const bool moves = random_.uniform() < chance;
      if (std::isnan(centre[axis])) {
        unit[axis] = anywhere(i);
      } else if (!moves) {
        unit[axis] = centre[axis];
      } else if (space_.is_category(i)) {
        unit[axis] = random_.uniform() < 0.5 ? random_.uniform() : centre[axis];
      } else {
        const int64_t cells = space_.space().cells(i);
        const double cell = cells > 0 ? 1.0 / static_cast<double>(cells) : 0;
        unit[axis] =
            std::clamp(centre[axis] + std::max(scale, cell) * random_.normal(), space_.low(axis), space_.high(axis));
      }
    }
    return unit;
  }

  const SearchSpace& space_;
  RandomStream& random_;
};

// Scores candidates, and climbs from a candidate to a local maximum of the acquisition function.
class Climber {
 public:
  Climber(const SearchSpace& space, const AcquisitionFunction& score) : space_(space), score_(score) {}

  std::vector<Candidate> scored(std::vector<Candidate> all) const {
    if (all.empty()) return all;
    Points points(static_cast<Index>(all.size()), all[0].x.size());
    for (size_t k = 0; k < all.size(); ++k) points.row(static_cast<Index>(k)) = all[k].x.transpose();
    const std::vector<double> scores = score_.at_all(points);
    for (size_t k = 0; k < all.size(); ++k) all[k].score = scores[k];
    return all;
  }

  Candidate climbed(Candidate at) const {
    for (int round = 0; round < 3; ++round) {
      const double before = at.score;
      along_slopes(at);
      along_cells(at);
      if (!(at.score > before + 1e-6)) break;
    }
    return at;
  }

 private:
  void along_slopes(Candidate& at) const {
    std::vector<Index> free;
    for (size_t i = 0; i < space_.size(); ++i) {
      const auto axis = static_cast<Index>(i);
      if (space_.climbs_by_slope(i) && !std::isnan(at.x[axis])) free.push_back(axis);
    }
    if (free.empty()) return;
    const auto n = static_cast<Index>(free.size());
    VectorXd start(n), low(n), high(n), x = at.x, slope(at.x.size());
    for (Index k = 0; k < n; ++k) {
      start[k] = at.x[free[static_cast<size_t>(k)]];
      low[k] = space_.low(free[static_cast<size_t>(k)]);
      high[k] = space_.high(free[static_cast<size_t>(k)]);
    }
    const auto function = [&](const VectorXd& moved, VectorXd& gradient) {
      for (Index k = 0; k < n; ++k) x[free[static_cast<size_t>(k)]] = moved[k];
      const double value = score_.at(x, slope);
      for (Index k = 0; k < n; ++k) gradient[k] = -slope[free[static_cast<size_t>(k)]];
      return -value;
    };
    const Minimum top = minimise(function, start, low, high,
                                 {.most_evaluations = space_.options().climb_evaluations,
                                  .gradient_tolerance = 1e-4,
                                  .value_tolerance = 1e-6,
                                  .longest_step = 0.1});
    for (Index k = 0; k < n; ++k) x[free[static_cast<size_t>(k)]] = top.x[k];
    if (auto one = space_.settled(x)) take_better(at, {*std::move(one)});
  }

  // Tries other values of each parameter in turn. For a category it tries at most kMostChoices values, for a parameter
  // with few grid steps all values, and for any other parameter the two neighbouring values.
  void along_cells(Candidate& at) const {
    for (size_t i = 0; i < space_.size(); ++i) {
      if (space_.space().cells(i) < 2 || std::isnan(at.x[static_cast<Index>(i)]) || space_.is_kept(i)) continue;
      take_better(at, neighbours(at, i));
    }
  }

  std::vector<Candidate> neighbours(const Candidate& at, size_t i) const {
    const Space& space = space_.space();
    const auto axis = static_cast<Index>(i);
    const int64_t cells = space.cells(i);
    const double here = at.x[axis];
    std::vector<Candidate> found;
    const auto add_unit = [&](double value) {
      VectorXd unit = at.x;
      unit[axis] = value;
      if (auto one = space_.settled(unit)) found.push_back(*std::move(one));
    };
    const auto add = [&](int64_t cell) {
      const double value = space.unit_at(i, space.value_of_cell(i, static_cast<double>(cell)));
      const bool outside = !space_.is_category(i) && (value < space_.low(axis) || value > space_.high(axis));
      if (value != here && !outside) add_unit(value);
    };
    if (space_.is_category(i) || cells <= kFine) {
      for (int64_t cell = 0; cell < std::min<int64_t>(cells, kMostChoices); ++cell) add(cell);
    } else if (space[i].log) {
      for (const double step : {-1.0, 1.0})
        add_unit(space.unit_at(i, std::clamp(at.point[i] + step, space[i].low, space[i].high)));
    } else {
      const auto cell = static_cast<int64_t>(std::floor(here * static_cast<double>(cells)));
      for (const int64_t step : {-1, 1}) {
        if (cell + step >= 0 && cell + step < cells) add(cell + step);
      }
    }
    return found;
  }

  void take_better(Candidate& at, std::vector<Candidate> others) const {
    for (Candidate& other : scored(std::move(others))) {
      if (other.score > at.score) at = std::move(other);
    }
  }

  const SearchSpace& space_;
  const AcquisitionFunction& score_;
};

bool close(const Candidate& a, const Candidate& b) {
  for (Index i = 0; i < a.x.size(); ++i) {
    if (std::isnan(a.x[i]) != std::isnan(b.x[i]) || std::abs(a.x[i] - b.x[i]) > 0.05) return false;
  }
  return true;
}

}  // namespace

std::optional<Candidate> maximise_acquisition(const Study& study, const AcquisitionFunction& score,
                                              RandomStream& random, const SearchOptions& options) {
  const SearchSpace space(study, options);
  const Climber climber(space, score);
  std::vector<Candidate> found = climber.scored(Draws(space, random).candidates());
  std::ranges::stable_sort(found, std::greater{}, &Candidate::score);
  if (found.empty()) return std::nullopt;
  Candidate best = found.front();
  std::vector<const Candidate*> starts;
  for (const Candidate& one : found) {
    if (static_cast<int>(starts.size()) >= options.climbs) break;
    const bool near = std::ranges::any_of(starts, [&](const Candidate* start) { return close(*start, one); });
    if (!near) starts.push_back(&one);
  }
  for (const Candidate* start : starts) {
    Candidate top = climber.climbed(*start);
    if (top.score > best.score) best = std::move(top);
  }
  return best;
}

std::vector<Axis> axes_of(const Space& space) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < space.size(); ++i) axes.push_back({space[i].kind == Parameter::Kind::categorical});
  return axes;
}

VectorXd row_of(const Space& space, const Point& point) {
  const std::vector<double> unit = space.to_unit(point);
  return Eigen::Map<const VectorXd>(unit.data(), static_cast<Index>(unit.size()));
}

}  // namespace sinew::tune
