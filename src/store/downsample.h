// Inside store/: reduces a series to fewer points that draw the same line. Pure.
#pragma once

#include <vector>

#include "store/store.h"

namespace sinew::store {

// Reduces `points`, ordered by step, to at most `max_points` (at least 4). The range of steps is cut into max_points/4
// slices of equal width; each slice keeps its first, last, minimum and maximum point. A line chart that is max_points/4
// pixels wide looks the same, pixel for pixel (M4, see store.h). NaN counts as neither minimum nor maximum.
void downsample(std::vector<Point>& points, int64_t max_points);

}  // namespace sinew::store
