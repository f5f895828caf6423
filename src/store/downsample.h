// Inside store/: reduces a series to fewer points that draw the same line. Pure.
#pragma once

#include <vector>

#include "store/store.h"

namespace sinew::store {

// Reduces `points`, which are ordered by step, to at most `max_points` (at least 4). Cuts the range of steps into
// max_points/4 slices of equal width, and keeps the first, last, minimum and maximum point of each slice. A line chart
// that is max_points/4 pixels wide stays the same, pixel for pixel (M4, see store.h). NaN is neither minimum nor
// maximum.
void downsample(std::vector<Point>& points, int64_t max_points);

}  // namespace sinew::store
