// Earlier studies' landscapes laid over this one's: how far each has to be moved.
//
// The best learning rate of another data set is rarely the same, but what lies around it looks alike. So the points of
// every earlier study are moved by one vector of its own, along numbers only. First the earlier ones are laid over one
// another, beginning with their best points in one place; that is done once. Then all of them together are laid over
// this study's trials, anew as trials end. Both are maxima of the Gaussian process's marginal likelihood, by its
// gradient, times a normal prior. For tune/ only.
#pragma once

#include <span>

#include "tune/gp.h"

namespace sinew::tune {

// In parts of each parameter's range.
struct Alignment {
  Eigen::VectorXd own_shifts;    // of every earlier study after another, against their common middle
  Eigen::VectorXd common_shift;  // of all of them, common_shift this study

  static size_t size(Eigen::Index axes, Eigen::Index studies) { return static_cast<size_t>(axes * (studies + 1)); }
  static Alignment read(std::span<const double> sampler_state, Eigen::Index axes);
  void write(std::vector<double>& sampler_state) const;
};

// The axes of points that have their study behind their coordinates, as one more category.
std::vector<Axis> with_study(std::vector<Axis> axes);

// Such points; study 0 is this one and stays, earlier ones count from 1.
Points aligned(Points points, const Alignment& alignment);

// `points` of the earlier studies only; `axes` without the study. Nothing is moved common_shift this study yet.
Alignment align_earlier_studies(const std::vector<Axis>& axes, const Points& points, const std::vector<double>& losses,
                                Eigen::Index studies);

// `begun`, with all earlier studies moved together to where the values of all points are likeliest. `kernel` is of
// points and their study.
Alignment align_with_study(const std::vector<Axis>& axes, const Kernel& kernel, const Points& points,
                           const Eigen::VectorXd& values, Alignment begun);

}  // namespace sinew::tune
