// Inside store/: fewer points that draw the same line. Pure.
#pragma once

#include <vector>

#include "store/store.h"

namespace sinew::store {

// Points are in order of steps. At most `most` (at least 4) are left: of each of most/4 slices of equal width in steps
// the first, the last, the least and the greatest, which at that width gives a line chart pixel for pixel (M4, see
// store.h). NaN is neither least nor greatest.
void downsample(std::vector<Point>& points, int64_t most);

}  // namespace sinew::store
