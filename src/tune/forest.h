// Grows a random forest of regression trees over a search space. A tree is a list of boxes, and its prediction is
// constant on each box.
//
// Breiman, "Random forests" (Machine Learning 2001): every tree is fitted to a bootstrap sample of the rows, and every
// split considers a random subset of the parameters. A number is split at a random place between two neighbouring
// values, or at the edge of a grid step if its values are evenly spaced. A category is split into the two groups of
// choices that differ most (Fisher 1958). A node is split by a parameter only if the parameter is active in all rows of
// the node, because an inactive parameter has no effect. A conditional parameter is therefore split only below the
// split on its parent. All functions are pure; the key seeds the randomness. Private to tune/.
#pragma once

#include <span>
#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

// The extent of a box along one parameter: a part of the unit interval, or a subset of the choices.
struct Side {
  double low = 0, high = 1;
  std::vector<bool> choices;  // for a category: which choices the box contains; empty for a number

  double fraction() const;  // the fraction of the parameter's whole range that the side covers
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

// `rows` are points of the unit cube, with NaN where a parameter is inactive. `values` has one entry for each row.
std::vector<Tree> grow_forest(const Space& space, std::span<const std::vector<double>> rows,
                              std::span<const double> values, RandomKey key, const ForestOptions& options = {});

}  // namespace sinew::tune
