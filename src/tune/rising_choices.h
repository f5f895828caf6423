// Selects choices of a category that are worth searching although another choice is better so far. A choice that is
// second best may become the best once it has been searched as thoroughly as the leader.
//
// The curve of a choice is the best loss so far of the trials with this choice. It only falls, and falls ever more
// slowly. A choice is dropped if its curve would not reach the best loss of the study even if it kept falling at its
// recent rate for all remaining trials: Li, Jiang, Gao, Shao, Zhang, Cui, "Efficient automatic CASH via rising bandits"
// (AAAI 2020).
#pragma once

#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

struct Choice {
  size_t parameter = 0;
  double value = 0;
  bool of(const Point& point) const { return point[parameter] == value; }
};

// Returns the choices that were tried, except those of the best trial and the dropped ones. Categories on which other
// parameters depend come first, because each of their choices is a search space of its own. Categories that depend on
// others come last, and only if a choice that makes them active is in the best trial or in this list. Within these
// groups, choices with fewer trials come first.
std::vector<Choice> rising_choices(const Study& study);

}  // namespace sinew::tune
