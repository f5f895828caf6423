// Maximises an acquisition function over the untried points of a search space.
//
// An acquisition function is a smooth function of the unit cube. It is defined between the cells of a parameter with
// finitely many values, too, so that a gradient can cross them. The search scores random points and perturbed copies of
// the best known points. The best of these then climb: along real numbers by gradient, along the other parameters by
// trying neighbouring values, in turn.
#pragma once

#include <eigen3/Eigen/Core>
#include <optional>
#include <vector>

#include "tune/gp_kernel.h"
#include "tune/rising_choices.h"
#include "tune/tune.h"

namespace sinew::tune {

class AcquisitionFunction {
 public:
  virtual ~AcquisitionFunction() = default;
  virtual std::vector<double> at_all(const Points& points) const = 0;
  // The value at one point, and its derivative by every coordinate: 0 for categories and inactive parameters.
  virtual double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const = 0;
};

struct SearchOptions {
  int candidates = 400;
  int climbs = 4;
  int climb_evaluations = 25;
  std::vector<Eigen::VectorXd> centres = {};  // good points to search around, the best first, in the unit cube
  // The box to stay in; empty: the whole cube. The box does not limit categories.
  Eigen::VectorXd low = {}, high = {};
  std::optional<Choice> within = {};  // a category that must keep this value
};

struct Candidate {
  Point point;
  Eigen::VectorXd x;
  double score = 0;
};

// None: every candidate has been tried before.
std::optional<Candidate> maximise_acquisition(const Study& study, const AcquisitionFunction& score,
                                              RandomStream& random, const SearchOptions& options);

// How the parameters of a space enter a kernel, and a point of the space in the unit cube.
std::vector<Axis> axes_of(const Space& space);
Eigen::VectorXd row_of(const Space& space, const Point& point);

}  // namespace sinew::tune
