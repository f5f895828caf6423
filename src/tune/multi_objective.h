// Several objectives: which points none other beats, how much space they dominate, and how much more one is likely to.
//
// All objectives are minimised. The space that is not yet dominated is cut into boxes, slice by slice; for independent
// normal objectives the expected gain of hypervolume is then a sum over boxes of products, exact for any number of
// objectives (Yang, Emmerich, Deutz, Baeck, "Efficient computation of expected hypervolume improvement using box
// decomposition algorithms", 2019). Its logarithm is taken as in acquisition.h.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/acquisition_search.h"
#include "tune/gp.h"

namespace sinew::tune {

using Objectives = std::vector<double>;

// Whether a is nowhere worse than b, and somewhere better.
bool dominates(const Objectives& a, const Objectives& b);
// Indices of those nobody dominates, ascending; of equal ones the first.
std::vector<size_t> front_of(const std::vector<Objectives>& all);
// For each the number of fronts to peel off before it is on one; 0: it is on the first.
std::vector<size_t> ranks_of(const std::vector<Objectives>& all);
// The volume dominated by the points and not beyond the reference.
double hypervolume(const std::vector<Objectives>& points, const Objectives& reference);

struct Box {
  Objectives low, high;  // low may be minus infinity
};
// Disjoint boxes that together are what lies within the reference and is dominated by no point.
std::vector<Box> free_boxes(const std::vector<Objectives>& points, const Objectives& reference);

// The logarithm of the expected gain of hypervolume.
class LogHypervolumeImprovement : public AcquisitionFunction {
 public:
  // `objectives`: one process each, all over the same points.
  LogHypervolumeImprovement(std::span<const GaussianProcess> objectives, std::vector<Box> boxes)
      : objectives_(objectives), boxes_(std::move(boxes)) {}
  std::vector<double> at_all(const Points& points) const override;
  double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const override;

 private:
  std::span<const GaussianProcess> objectives_;
  std::vector<Box> boxes_;
};

}  // namespace sinew::tune
