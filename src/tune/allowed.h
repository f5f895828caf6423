// Draws points that satisfy the constraints between parameters. Private to tune/.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

inline constexpr int kAllowedDraws = 1000;

// Draws up to `draws` points and returns the first that satisfies the constraints, or else the last one. Without
// constraints, it returns the first point.
template <typename Draw>
Point first_allowed(const Space& space, int draws, Draw&& draw) {
  Point point = draw();
  for (int i = 1; i < draws && !space.allows(point); ++i) point = draw();
  return point;
}

// A uniformly random point of the space, whether or not it satisfies the constraints.
Point random_point(const Space& space, RandomStream& random);

// A space-filling design: the scrambled Sobol points (sobol.h) that satisfy the constraints. The object remembers its
// position in the sequence only to save time: the points depend only on the study and the purpose.
class SobolDesign {
 public:
  explicit SobolDesign(std::string_view purpose) : purpose_(purpose) {}
  Point next_point(const Study& study);  // returns the point for the next trial of the study

 private:
  std::string purpose_;
  RandomKey key_{};
  // The next index of the sequence, and the number of points before it that satisfy the constraints.
  int64_t index_ = 0, allowed_ = 0;
};

}  // namespace sinew::tune
