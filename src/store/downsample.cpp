#include "store/downsample.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sinew::store {
namespace {

// Appends the first, last, minimum and maximum point of [begin, end) to `kept`, in order and without duplicates.
void keep_of_slice(const std::vector<Point>& points, size_t begin, size_t end, std::vector<Point>& kept) {
  size_t min = begin, max = begin;
  for (size_t i = begin; i < end; ++i) {
    if (std::isnan(points[i].value)) continue;
    if (std::isnan(points[min].value) || points[i].value < points[min].value) min = i;
    if (std::isnan(points[max].value) || points[i].value > points[max].value) max = i;
  }
  size_t chosen[] = {begin, min, max, end - 1};
  std::sort(std::begin(chosen), std::end(chosen));
  const size_t* last = std::unique(std::begin(chosen), std::end(chosen));
  for (const size_t* i = std::begin(chosen); i != last; ++i) kept.push_back(points[*i]);
}

}  // namespace

void downsample(std::vector<Point>& points, int64_t max_points) {
  SINEW_CHECK(max_points >= 4, max_points);
  if (static_cast<int64_t>(points.size()) <= max_points) return;
  const int64_t slices = max_points / 4;
  const auto first = static_cast<double>(points.front().step), last = static_cast<double>(points.back().step);
  const auto slice_of = [&](size_t i) {
    // If all points have the same step, as in some offline logs, cut the slices by index instead.
    const double position = last > first ? (static_cast<double>(points[i].step) - first) / (last - first)
                                         : static_cast<double>(i) / static_cast<double>(points.size());
    return std::min(slices - 1, static_cast<int64_t>(position * static_cast<double>(slices)));
  };
  std::vector<Point> kept;
  for (size_t begin = 0; begin < points.size();) {
    size_t end = begin + 1;
    while (end < points.size() && slice_of(end) == slice_of(begin)) ++end;
    keep_of_slice(points, begin, end, kept);
    begin = end;
  }
  points = std::move(kept);
}

}  // namespace sinew::store
