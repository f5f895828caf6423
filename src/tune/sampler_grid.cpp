// Grid search: suggests all combinations of some values of each parameter; the last parameters change first.
//
// A parameter with few values gets all of them. Other parameters get as many evenly spaced values, both ends included,
// as the budget allows. When the whole grid has been tried, the grid becomes twice as fine.
//
// The next point is the first point in this order that no trial has. The position in the grid therefore follows from
// the trial history.
#include <algorithm>
#include <cmath>

#include "tune/allowed.h"
#include "tune/makers.h"
#include "tune/rounding.h"

namespace sinew::tune {
namespace {

// kMostLevels: the most values of a parameter. kUsualLevels: the number of its values if there is no budget.
constexpr int64_t kMostLevels = 1000, kUsualLevels = 5;
// Over the whole study, the sampler skips at most this many infeasible points.
constexpr int64_t kMostLooks = 1'000'000;
constexpr const char* kFew = "hardly any point of the grid satisfies the constraints: drawn at random";

// Returns the values of a parameter in the grid. They are rounded as suggestions are, so that the sampler recognises
// the values that were tried.
std::vector<double> levels_of(const Space& space, size_t parameter, int64_t levels) {
  const int64_t cells = space.cells(parameter);
  if (cells > 0) levels = space[parameter].ordered() ? std::min(levels, cells) : cells;
  std::vector<double> values;
  for (int64_t i = 0; i < levels; ++i) {
    const double unit = levels == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(levels - 1);
    const double value = levels == cells ? space.value_of_cell(parameter, static_cast<double>(i))
                                         : as_written(space[parameter], space.value_at(parameter, unit));
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  return values;
}

class GridSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    const Space& space = study.space();
    if (levels_.empty() || budget_ != study.options().budget) begin(study);
    while (!study.is_new(point_)) {
      if (looked_ == kMostLooks) return {drawn(study), "grid", kFew, {}};
      looked_ += space.allows(point_) ? 0 : 1;
      if (std::optional<Point> next = point_after(space, point_, last_to_change(space))) {
        point_ = *std::move(next);
      } else if (!refine(space)) {
        return {point_, "grid", "the whole grid has been tried", {}};
      }
    }
    return {point_, "grid", "the next point of the grid", {}};
  }

 private:
  void begin(const Study& study) {
    budget_ = study.options().budget;
    looked_ = 0;
    most_ = kUsualLevels;
    if (budget_ > 0) {
      most_ = 1;
      while (most_ < kMostLevels && size_with(study.space(), most_ + 1) <= static_cast<double>(budget_)) ++most_;
    }
    lay_out(study.space());
  }

  // Inserts a value between any two neighbours. Returns false if the grid already holds all values of the space.
  bool refine(const Space& space) {
    const int64_t finer = std::max<int64_t>(2, 2 * most_ - 1);
    if (size_with(space, finer) <= size_with(space, most_)) return false;
    most_ = finer;
    lay_out(space);
    return true;
  }

  void lay_out(const Space& space) {
    levels_.clear();
    for (size_t i = 0; i < space.size(); ++i) levels_.push_back(levels_of(space, i, most_));
    point_.assign(space.size(), kInactive);
    fill(space, point_, 0);
  }

  static double size_with(const Space& space, int64_t levels) {
    double size = 1;
    for (size_t i = 0; i < space.size(); ++i) size *= static_cast<double>(levels_of(space, i, levels).size());
    return size;
  }

  void fill(const Space& space, Point& point, size_t from) const {
    for (size_t i = from; i < space.size(); ++i) point[i] = space.active(i, point) ? levels_[i].front() : kInactive;
  }

  // Returns the last parameter that the step to the next point may change. If the current point violates a constraint,
  // this is the last parameter that the constraint names: a change of only later parameters cannot satisfy the
  // constraint.
  size_t last_to_change(const Space& space) const {
    const Comparison* violated = space.violated(point_);
    return violated == nullptr ? space.size() - 1 : space.last_parameter_of(*violated);
  }

  static Point drawn(const Study& study) {
    RandomStream random = study.random("grid");
    return first_allowed(study.space(), kAllowedDraws, [&] { return random_point(study.space(), random); });
  }

  std::optional<Point> point_after(const Space& space, const Point& point, size_t from) const {
    for (size_t last = from + 1; last-- > 0;) {
      const auto next = std::ranges::upper_bound(levels_[last], point[last]);
      if (std::isnan(point[last]) || next == levels_[last].end()) continue;
      Point after = point;
      after[last] = *next;
      fill(space, after, last + 1);
      return after;
    }
    return std::nullopt;
  }

  int64_t looked_ = 0;              // points skipped because they violate constraints
  int64_t budget_ = -1, most_ = 0;  // the budget for which the values were chosen, and the most values of a parameter
  std::vector<std::vector<double>> levels_;  // the values of each parameter in the grid, ascending
  Point point_;                              // every point before it was tried or is infeasible
};

}  // namespace

std::unique_ptr<Sampler> make_grid() {
  return std::make_unique<GridSampler>();
}

}  // namespace sinew::tune
