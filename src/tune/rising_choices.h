// Selects choices of a category that are behind the best one but worth searching. A choice that is second best so far
// may become the best once it has been searched as thoroughly as the leader.
//
// The curve of a choice is the best loss of its trials so far. It only falls, and falls ever more slowly. A choice is
// dropped when its curve would not reach the best loss of the study even if it kept falling at its recent rate for all
// remaining trials: Li, Jiang, Gao, Shao, Zhang, Cui, "Efficient automatic CASH via rising bandits" (AAAI 2020).
#pragma once

#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

struct Choice {
  size_t parameter = 0;
  double value = 0;
  bool of(const Point& point) const { return point[parameter] == value; }
};

// Returns the tried choices, without those of the best trial and without dropped ones. Categories that other parameters
// depend on come first, because each of their choices is a search space of its own. Categories that depend on others
// come last, and only if a choice that makes them active is in the best trial or in this list. Within these groups,
// choices with fewer trials come first.
std::vector<Choice> rising_choices(const Study& study);

}  // namespace sinew::tune
