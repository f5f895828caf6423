// Where a score over a search space is highest, among points nobody has tried.
//
// The score is a smooth function of the unit cube between the cells of what is not a continuum. Random points and
// disturbed copies of the best known ones are scored, the best of them climb: by gradient along numbers, by trying
// neighbours along the rest, in turn.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "tune/gp_kernel.h"
#include "tune/rising_choices.h"
#include "tune/tune.h"

namespace sinew::tune {

class Score {
 public:
  virtual ~Score() = default;
  virtual std::vector<double> at_all(const Points& points) const = 0;
  // One point, and its derivatives by every coordinate (0 for categories and what is inactive).
  virtual double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const = 0;
};

struct SearchOptions {
  int candidates = 400;
  int climbs = 4;
  int climb_evaluations = 25;
  std::vector<Eigen::VectorXd> centres = {};  // good points to look around, the best first; rows of the cube
  // The part of the cube to stay in; empty: all of it. Categories are free in either.
  Eigen::VectorXd low = {}, high = {};
  std::optional<Choice> within = {};  // a category that keeps its value
};

struct Found {
  Point point;
  Eigen::VectorXd x;
  double score = 0;
};

// None: every candidate was tried before.
std::optional<Found> best_untried(const Study& study, const Score& score, RandomStream& random,
                                  const SearchOptions& options);

// The axes of a space, and a point as a row of the cube.
std::vector<Axis> axes_of(const Space& space);
Eigen::VectorXd row_of(const Space& space, const Point& point);

}  // namespace sinew::tune
