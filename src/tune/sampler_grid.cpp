// Grid search: every combination of some values of each parameter, the last parameters changing first.
//
// A parameter with few values gets all of them; others get as many evenly spread ones (both ends among them) as keep
// the grid within the budget.
#include <algorithm>
#include <cmath>

#include "tune/makers.h"

namespace sinew::tune {
namespace {

constexpr int64_t kMostLevels = 1000, kUsualLevels = 5;  // a parameter, with a budget and without

std::vector<double> levels_of(const Space& space, size_t parameter, int64_t levels) {
  const int64_t cells = space.cells(parameter);
  if (cells > 0) levels = space[parameter].ordered() ? std::min(levels, cells) : cells;
  std::vector<double> values;
  for (int64_t i = 0; i < levels; ++i) {
    const double unit = levels == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(levels - 1);
    const double value = levels == cells
                             ? space.value_at(parameter, (static_cast<double>(i) + 0.5) / static_cast<double>(cells))
                             : space.value_at(parameter, unit);
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  return values;
}

class GridSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    if (levels_.empty()) choose_levels(study);
    Point last;
    for (auto trial = study.trials().rbegin(); trial != study.trials().rend() && last.empty(); ++trial) {
      if (trial->by == "grid") last = trial->point;
    }
    std::optional<Point> next = last.empty() ? std::nullopt : point_after(study.space(), last);
    if (next) return {*std::move(next), "grid", "the next point of the grid", {}};
    Point first(study.space().size(), kInactive);
    fill(study.space(), first, 0);
    return {std::move(first), "grid", last.empty() ? "the first point of the grid" : "the grid begins again", {}};
  }

 private:
  void choose_levels(const Study& study) {
    const Space& space = study.space();
    int64_t most = kUsualLevels;
    if (const int64_t budget = study.options().budget; budget > 0) {
      most = 1;
      while (most < kMostLevels && size_with(space, most + 1) <= static_cast<double>(budget)) ++most;
    }
    for (size_t i = 0; i < space.size(); ++i) levels_.push_back(levels_of(space, i, most));
  }

  static double size_with(const Space& space, int64_t levels) {
    double size = 1;
    for (size_t i = 0; i < space.size(); ++i) size *= static_cast<double>(levels_of(space, i, levels).size());
    return size;
  }

  void fill(const Space& space, Point& point, size_t from) const {
    for (size_t i = from; i < space.size(); ++i) point[i] = space.active(i, point) ? levels_[i].front() : kInactive;
  }

  std::optional<Point> point_after(const Space& space, const Point& point) const {
    for (size_t last = space.size(); last-- > 0;) {
      const auto next = std::ranges::upper_bound(levels_[last], point[last]);
      if (std::isnan(point[last]) || next == levels_[last].end()) continue;
      Point after = point;
      after[last] = *next;
      fill(space, after, last + 1);
      return after;
    }
    return std::nullopt;
  }

  std::vector<std::vector<double>> levels_;  // of each parameter, ascending
};

}  // namespace

std::unique_ptr<Sampler> make_grid() {
  return std::make_unique<GridSampler>();
}

}  // namespace sinew::tune
