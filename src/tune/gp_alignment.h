// Aligns earlier studies with this one: shifts their points so that the loss landscapes agree.
//
// The best learning rate of another data set is rarely the same, but the landscape around it looks similar. All points
// of an earlier study are therefore shifted by one vector, along numeric parameters only. First the earlier studies are
// aligned with one another, starting with their best points in the same place; this happens once. Then all of them
// together are aligned with the trials of this study. This is repeated when more trials have ended. Both alignments
// maximise, by gradient, the marginal likelihood of the Gaussian process times a normal prior of the shifts. Private to
// tune/.
#pragma once

#include <span>

#include "tune/gp.h"

namespace sinew::tune {

// Shifts, as fractions of the range of each parameter.
struct Alignment {
  Eigen::VectorXd own_shifts;    // the shift of each earlier study, one after another
  Eigen::VectorXd common_shift;  // the shift of all earlier studies together, towards this study

  static size_t size(Eigen::Index axes, Eigen::Index studies) { return static_cast<size_t>(axes * (studies + 1)); }
  static Alignment read(std::span<const double> sampler_state, Eigen::Index axes);
  void write(std::vector<double>& sampler_state) const;
};

// Appends an axis for the study, which is one more category. A point on these axes has the number of its study as its
// last coordinate.
std::vector<Axis> with_study(std::vector<Axis> axes);

// Shifts points whose last coordinate is the number of their study. Study 0 is this study and stays in place; earlier
// studies count from 1.
Points aligned(Points points, const Alignment& alignment);

// Aligns the earlier studies with one another. `points` holds only the points of earlier studies, with the study as the
// last coordinate; `axes` does not include the study. The common shift of the result is 0.
Alignment align_earlier_studies(const std::vector<Axis>& axes, const Points& points, const std::vector<double>& losses,
                                Eigen::Index studies);

// Returns `begun` with the common shift under which the values of all points are most likely. `kernel` and `points`
// include the axis of the study.
Alignment align_with_study(const std::vector<Axis>& axes, const Kernel& kernel, const Points& points,
                           const Eigen::VectorXd& values, Alignment begun);

}  // namespace sinew::tune
