// Enumerates the points of a finite space in a fixed order, in which the last parameters change first. Compares points.
#include <bit>
#include <cmath>

#include "tune/tune.h"

namespace sinew::tune {

void Space::count_points() {
  double bound = 1;  // an upper bound of the number of points, as if all parameters were always active
  for (const int64_t cells : cells_) {
    if (cells == 0) return;
    bound *= static_cast<double>(cells);
  }
  if (!conditional_ && bound > static_cast<double>(kMostCounted)) return;
  if (!conditional_ && constraints_.empty()) {
    count_ = static_cast<int64_t>(bound);
    return;
  }
  int64_t points = 0, allowed = 0;
  for (std::optional<Point> point = first_point(); point; point = point_after(*point)) {
    if (++points > kMostCounted) return;
    allowed += allows(*point);
  }
  count_ = allowed;
}

Point Space::first_point() const {
  Point point(size());
  for (size_t i = 0; i < size(); ++i) point[i] = active(i, point) ? value_at(i, 0) : kInactive;
  return point;
}

std::optional<Point> Space::point_after(const Point& point) const {
  for (size_t last = size(); last-- > 0;) {
    if (std::isnan(point[last]) || cells_[last] == 1) continue;
    const Parameter& parameter = parameters_[last];
    const double cell = std::nearbyint((point[last] - parameter.low) / parameter.step) + 1;
    if (cell >= static_cast<double>(cells_[last])) continue;
    Point next = point;
    next[last] = value_of_cell(last, cell);
    for (size_t i = last + 1; i < size(); ++i) next[i] = active(i, next) ? value_at(i, 0) : kInactive;
    return next;
  }
  return std::nullopt;
}

bool same_point(const Point& a, const Point& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return false;
  }
  return true;
}

uint64_t hash_of(const Point& point) {
  uint64_t hash = 0x9E3779B97F4A7C15;
  for (const double value : point) {
    const uint64_t bits = std::isnan(value) ? 1 : std::bit_cast<uint64_t>(value + 0.0);  // + 0.0 turns -0 to 0
    hash = (hash ^ bits) * 0xBF58476D1CE4E5B9;
    hash ^= hash >> 29;
  }
  hash *= 0x94D049BB133111EB;
  return hash ^ (hash >> 31);
}

}  // namespace sinew::tune
