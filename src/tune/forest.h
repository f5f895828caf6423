// A random forest of regression trees over a space, kept as boxes: what a tree says is constant on each.
//
// Breiman, "Random forests" (Machine Learning 2001): every tree sees a sample of the rows with repetition and may split
// by a part of the parameters only. Numbers are split somewhere between two neighbours, choices into the two groups
// that differ most (Fisher 1958). A parameter may split only where it is active in every row that is left, that is
// below the choice it depends on: an inactive one has no effect. Pure and seeded. For tune/ only.
#pragma once

#include <span>
#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

// What a box is along one parameter: from low to high in the unit interval, or some of the choices.
struct Side {
  double low = 0, high = 1;
  std::vector<bool> choices;  // of a category: which are inside; empty: a number

  double part() const;  // of the parameter's whole range
  bool holds(double unit) const;
};

struct Leaf {
  std::vector<Side> box;
  double value = 0;
  double volume() const;
};

using Tree = std::vector<Leaf>;  // disjoint boxes that fill the cube

struct ForestOptions {
  int trees = 64;
  size_t fewest = 4;         // rows on the way to a leaf: fewer are not split
  double considered = 0.83;  // of the parameters, at each split
};

// `rows`: points of the unit cube, NaN where inactive; one value each.
std::vector<Tree> grow_forest(const Space& space, std::span<const std::vector<double>> rows,
                              std::span<const double> values, RandomKey key, const ForestOptions& options = {});

}  // namespace sinew::tune
