// A random forest of regression trees over a search space. A tree is a list of boxes, and its prediction is constant on
// each box.
//
// Breiman, "Random forests" (Machine Learning 2001): every tree is fitted to a bootstrap sample of the rows, and every
// split considers a random subset of the parameters. A number is split at a random place between two neighbouring
// values; a category is split into the two groups of choices that differ most (Fisher 1958). A parameter may be split
// only where it is active in every remaining row, that is, below the split on the parent that activates it: an inactive
// parameter has no effect. All functions are pure; the key seeds the randomness. For tune/ only.
#pragma once

#include <span>
#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

// The extent of a box along one parameter: an interval of the unit interval, or a subset of the choices.
struct Side {
  double low = 0, high = 1;
  std::vector<bool> choices;  // category: which choices the box contains; empty: the parameter is a number

  double fraction() const;  // the fraction of the parameter's whole range
  bool holds(double unit) const;
};

struct Leaf {
  std::vector<Side> box;
  double value = 0;
  double volume() const;
};

using Tree = std::vector<Leaf>;  // disjoint boxes that fill the unit cube

struct ForestOptions {
  int trees = 64;
  size_t fewest = 4;         // a node with fewer rows is not split
  double considered = 0.83;  // the fraction of the parameters that each split considers
};

// `rows`: points of the unit cube, NaN where a parameter is inactive. `values`: one for each row.
std::vector<Tree> grow_forest(const Space& space, std::span<const std::vector<double>> rows,
                              std::span<const double> values, RandomKey key, const ForestOptions& options = {});

}  // namespace sinew::tune
