// Computes Pareto fronts, the hypervolume and its expected improvement, for studies with several objectives.
//
// All objectives are minimised. The region that no point dominates is cut into disjoint boxes, slice by slice. If the
// objectives are independent and normal, the expected hypervolume improvement is a sum over the boxes of products,
// exact for any number of objectives (Yang, Emmerich, Deutz, Baeck, "Efficient computation of expected hypervolume
// improvement using box decomposition algorithms", 2019). Its logarithm is computed as in log_improvement.h.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/acquisition_search.h"
#include "tune/gp.h"

namespace sinew::tune {

using Objectives = std::vector<double>;

// Returns whether `a` is nowhere worse than `b` and somewhere better.
bool dominates(const Objectives& a, const Objectives& b);
// The indices of the Pareto front, ascending. It includes only the first of several equal points.
std::vector<size_t> front_of(const std::vector<Objectives>& all);
// The non-domination rank of each point: 0 on the first front, 1 on the front that remains without it, and so on.
std::vector<size_t> ranks_of(const std::vector<Objectives>& all);
// The volume that the points dominate within the reference point.
double hypervolume(const std::vector<Objectives>& points, const Objectives& reference);

struct Box {
  Objectives low, high;  // low may be minus infinity
};
// Disjoint boxes that together fill the region within the reference point that no point dominates.
std::vector<Box> free_boxes(const std::vector<Objectives>& points, const Objectives& reference);

// The logarithm of the expected hypervolume improvement.
class LogHypervolumeImprovement : public AcquisitionFunction {
 public:
  // `objectives` holds one Gaussian process for each objective, all with the same points.
  LogHypervolumeImprovement(std::span<const GaussianProcess> objectives, std::vector<Box> boxes)
      : objectives_(objectives), boxes_(std::move(boxes)) {}
  std::vector<double> at_all(const Points& points) const override;
  double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const override;

 private:
  std::span<const GaussianProcess> objectives_;
  std::vector<Box> boxes_;
};

}  // namespace sinew::tune
