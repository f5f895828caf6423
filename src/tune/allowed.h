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

// An even cover of what is allowed, by scrambled Sobol points (sobol.h). Remembers how far it has gone; the answer is a
// function of the study and the purpose.
class Cover {
 public:
  explicit Cover(std::string_view purpose) : purpose_(purpose) {}
  Point place_of_next(const Study& study);  // of the next trial

 private:
  std::string purpose_;
  RandomKey key_{};
  int64_t index_ = 0, allowed_ = 0;  // the sequence's next point, and how many before it are allowed
};

}  // namespace sinew::tune
