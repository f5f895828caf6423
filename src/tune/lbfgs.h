// Minimises a smooth function in a box.
//
// Limited-memory BFGS (Nocedal 1980) on the variables that are free to move, with steps projected onto the box
// (Bertsekas 1982). Serves the fits of a Gaussian process and the climbs of its acquisition: tens of variables at most,
// functions that cost much more than the steps between them. A pure function of its arguments; never throws; a value
// that is not finite is a step too far.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace sinew::tune {

// The value at x; fills `gradient`, which has x's size.
using SmoothFunction = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct LbfgsOptions {
  int most_evaluations = 60;
  double gradient_tolerance = 1e-5;  // of the largest entry that may still move
  double value_tolerance = 1e-9;     // relative fall of one step below which it is over
  double longest_step = 2;           // of one entry, in the first trial of a step
};

struct Minimum {
  Eigen::VectorXd x;
  double value = 0;
  int evaluations = 0;
};

// Starts at `x`, moved into the box first.
Minimum minimise(const SmoothFunction& function, Eigen::VectorXd x, const Eigen::VectorXd& low,
                 const Eigen::VectorXd& high, const LbfgsOptions& options = {});

}  // namespace sinew::tune
