// Points that the constraints between parameters allow. Private to tune/.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

inline constexpr int kAllowedDraws = 1000;

// The first that they allow of so many draws; else the last. Without constraints that is the first of all.
template <typename Draw>
Point first_allowed(const Space& space, int draws, Draw&& draw) {
  Point point = draw();
  for (int i = 1; i < draws && !space.allows(point); ++i) point = draw();
  return point;
}

// Anywhere in the space, allowed or not.
Point random_point(const Space& space, RandomStream& random);

// The next trial's place in an even cover of what is allowed: of scrambled Sobol points (sobol.h), `purpose` the key.
Point next_of_cover(const Study& study, std::string_view purpose);

}  // namespace sinew::tune
