// Which choice of a category to look into though it is behind: second best so far may be best once it was searched as
// thoroughly as the one ahead.
//
// Each choice has a curve, the best loss of its trials, which only falls, and ever more slowly. One that would not come
// to the study's best if it went on as in its last trials, for as many as are left, is given up: Li, Jiang, Gao, Shao,
// Zhang, Cui, "Efficient automatic CASH via rising bandits" (AAAI 2020).
#pragma once

#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

struct Choice {
  size_t parameter = 0;
  double value = 0;
  bool of(const Point& point) const { return point[parameter] == value; }
};

// Those that were tried, are not the best trial's and are not given up; those with the fewest trials first. Before them
// those of categories that other parameters depend on, whose choices are searches of their own; after them those of
// categories that depend on another one, unless what they depend on is given up itself.
std::vector<Choice> rising_choices(const Study& study);

}  // namespace sinew::tune
