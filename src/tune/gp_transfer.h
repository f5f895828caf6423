// What earlier studies say about this one: one Gaussian process of all of them together.
//
// The study a trial is of is one more category of the kernel, so the process is a function that all studies share times
// one of each alone, and the values say how much of it is shared (Bonilla, Chai, Williams, "Multi-task Gaussian process
// prediction", NIPS 2007, with one correlation between all studies; Swersky, Snoek, Adams, "Multi-task Bayesian
// optimization", NIPS 2013). The earlier landscapes are moved to where they agree best (gp_alignment.h). Whether it is
// believed is asked anew each time: only as long as it puts the trials of this study in a better order, each left out
// in turn, than the process that knows nothing else (the measure of Feurer, Letham, Hutter, Bakshy, "Practical transfer
// learning for Bayesian optimization", arXiv 1802.02219). So studies of something else do no harm. For one objective
// without constraints. For tune/ only.
#pragma once

#include "tune/gp_alignment.h"
#include "tune/gp_fitter.h"
#include "tune/tune.h"

namespace sinew::tune {

// How many earlier studies such a process can be of: of a study with several objectives or constraints none.
Eigen::Index usable_earlier_studies(const Study& study);

struct JointFit {
  FitRecord numbers;
  Alignment alignment;

  static size_t size(Eigen::Index axes, Eigen::Index studies);  // `axes` without the study
  static JointFit read(std::span<const double> sampler_state, Eigen::Index axes);
  void write(std::vector<double>& sampler_state) const;
};

struct JointModel {
  JointFit fit;
  GaussianProcess process;  // its first rows are this study's; asked about this study
};

// `points` and `losses` are this study's; `memory`: of the last joint fit, or null.
JointModel joint_model_of(const std::vector<EarlierStudy>& earlier, const std::vector<Axis>& axes, const Points& points,
                          std::vector<double> losses, double trials, const JointFit* memory);

// Whether the joint process puts the losses of this study (its first rows) in no worse an order than the other.
bool ranks_better(const GaussianProcess& joint, const GaussianProcess& alone, const std::vector<double>& losses);

}  // namespace sinew::tune
