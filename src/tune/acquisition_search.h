// Maximises an acquisition function over the untried points of a search space.
//
// An acquisition function is smooth on the unit cube. It is also defined between the values of a parameter with
// finitely many values, so that a gradient leads from one value to the next. The search scores random points and
// perturbed copies of the best known points. It then improves the best of these by hill climbing. In turn, it follows
// the gradient along real numbers and finely divided parameters, and tries neighbouring values of the other parameters.
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
  // Returns the value at one point. Sets `slope` to the derivative by every coordinate; it is 0 for categories and
  // inactive parameters.
  virtual double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const = 0;
};

struct SearchOptions {
  int candidates = 400;
  int climbs = 4;
  int climb_evaluations = 25;
  std::vector<Eigen::VectorXd> centres = {};  // good points to search around, the best first, in the unit cube
  // The search stays in this box, or in the whole cube if the vectors are empty. The box does not limit categories.
  Eigen::VectorXd low = {}, high = {};
  std::optional<Choice> within = {};  // a category that must keep this value
};

struct Candidate {
  Point point;
  Eigen::VectorXd x;
  double score = 0;
};

// Returns nullopt if every candidate was tried before or violates a constraint.
std::optional<Candidate> maximise_acquisition(const Study& study, const AcquisitionFunction& score,
                                              RandomStream& random, const SearchOptions& options);

// axes_of() lists how the parameters of a space enter a kernel. row_of() maps a point of the space to the unit cube.
std::vector<Axis> axes_of(const Space& space);
Eigen::VectorXd row_of(const Space& space, const Point& point);

}  // namespace sinew::tune
