#include "store/downsample.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sinew::store {
namespace {

// The first, last, least and greatest of [begin, end), in their order, each once.
void keep_of_slice(const std::vector<Point>& points, size_t begin, size_t end, std::vector<Point>& kept) {
  size_t least = begin, most = begin;
  for (size_t i = begin; i < end; ++i) {
    if (std::isnan(points[i].value)) continue;
    if (std::isnan(points[least].value) || points[i].value < points[least].value) least = i;
    if (std::isnan(points[most].value) || points[i].value > points[most].value) most = i;
  }
  size_t chosen[] = {begin, least, most, end - 1};
  std::sort(std::begin(chosen), std::end(chosen));
  const size_t* last = std::unique(std::begin(chosen), std::end(chosen));
  for (const size_t* i = std::begin(chosen); i != last; ++i) kept.push_back(points[*i]);
}

}  // namespace

void downsample(std::vector<Point>& points, int64_t most) {
  SINEW_CHECK(most >= 4, most);
  if (static_cast<int64_t>(points.size()) <= most) return;
  const int64_t slices = most / 4;
  const auto first = static_cast<double>(points.front().step), last = static_cast<double>(points.back().step);
  const auto slice_of = [&](size_t i) {
    // Steps that are all the same, as an offline log may have them, are cut by place.
    const double part = last > first ? (static_cast<double>(points[i].step) - first) / (last - first)
                                     : static_cast<double>(i) / static_cast<double>(points.size());
    return std::min(slices - 1, static_cast<int64_t>(part * static_cast<double>(slices)));
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
