#include <algorithm>
#include <cmath>
#include <limits>

#include "plot/plot.h"

namespace sinew::plot {

void Thinner::merge(Interval& into, const Interval& from) {
  if (from.gap) {
    into.gap = true;
    into.gap_at = from.gap_at;
  }
  if (from.empty) return;
  if (into.empty) {
    const bool gap = into.gap;
    const double gap_at = into.gap_at;
    into = from;
    into.gap = gap;
    into.gap_at = gap_at;
    return;
  }
  if (from.low.y < into.low.y) into.low = from.low;
  if (from.high.y > into.high.y) into.high = from.high;
  if (from.first.x < into.first.x) into.first = from.first;
  if (from.last.x >= into.last.x) into.last = from.last;
}

void Thinner::add(Point point) {
  const bool finite = std::isfinite(point.y);
  not_finite_ += finite ? 0 : 1;
  const auto number = [&] {
    constexpr double kMost = 9e18;  // the largest number that an int64_t surely has
    return static_cast<int64_t>(std::clamp(std::floor(point.x / width_), -kMost, kMost));
  };
  merge(intervals_[number()],
        finite ? Interval{false, false, 0, point, point, point, point} : Interval{.gap = true, .gap_at = point.x});
  while (intervals_.size() > most_) {
    width_ *= 2;
    std::map<int64_t, Interval> wider;
    for (const auto& [old, interval] : intervals_) merge(wider[old >> 1], interval);
    intervals_ = std::move(wider);
  }
}

std::vector<Point> Thinner::points() const {
  std::vector<Point> all;
  const auto put = [&](const Point& point) {
    if (all.empty() || !(all.back() == point)) all.push_back(point);
  };
  for (const auto& [number, interval] : intervals_) {
    if (!interval.empty) {
      const bool low_first = interval.low.x <= interval.high.x;
      put(interval.first);
      put(low_first ? interval.low : interval.high);
      put(low_first ? interval.high : interval.low);
      put(interval.last);
    }
    if (interval.gap) all.push_back({interval.gap_at, std::numeric_limits<double>::quiet_NaN()});
  }
  return all;
}

}  // namespace sinew::plot
