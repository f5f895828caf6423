// Selects choices of a category that are behind the best one but worth searching: a choice that is second best so far
// may turn out best once it has been searched as thoroughly as the leader.
//
// The curve of a choice is the best loss of its trials so far. It only falls, and ever more slowly. A choice is given
// up when its curve would not reach the study's best loss even if it kept falling at its recent rate for all remaining
// trials: Li, Jiang, Gao, Shao, Zhang, Cui, "Efficient automatic CASH via rising bandits" (AAAI 2020).
#pragma once

#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

struct Choice {
  size_t parameter = 0;
  double value = 0;
  bool of(const Point& point) const { return point[parameter] == value; }
};

// The tried choices that are not those of the best trial and are not given up. Categories that other parameters depend
// on come first, because each of their choices is a search space of its own; categories that depend on others come
// last, and only if the choice they depend on is not given up. Within these groups, choices with fewer trials come
// first.
std::vector<Choice> rising_choices(const Study& study);

}  // namespace sinew::tune
