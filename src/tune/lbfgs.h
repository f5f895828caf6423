// Minimises a smooth function within a box.
//
// Limited-memory BFGS (Nocedal 1980) on the variables that can move, with steps projected onto the box (Bertsekas
// 1982). It is made for fits of Gaussian processes and for maximising acquisition functions: at most tens of variables,
// and functions that cost much more than the work of the optimiser itself. minimise() is a pure function of its
// arguments and never throws. If a value is not finite, the optimiser shortens the step.
#pragma once

#include <eigen3/Eigen/Core>
#include <functional>

namespace sinew::tune {

// Returns the value at x and fills `gradient`, which has the size of x.
using SmoothFunction = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct LbfgsOptions {
  int most_evaluations = 60;
  double gradient_tolerance = 1e-5;  // the search ends when no free entry of the gradient is larger
  double value_tolerance = 1e-9;     // the search ends when a step lowers the value by a smaller fraction of its size
  double longest_step = 2;           // largest change of one variable in the first attempt of a step
};

struct Minimum {
  Eigen::VectorXd x;
  double value = 0;
  int evaluations = 0;
};

// Starts at `x`, projected onto the box.
Minimum minimise(const SmoothFunction& function, Eigen::VectorXd x, const Eigen::VectorXd& low,
                 const Eigen::VectorXd& high, const LbfgsOptions& options = {});

}  // namespace sinew::tune
