// What earlier studies say about this one: one Gaussian process of all of them together.
//
// The study a trial is of is one more category of the kernel, so the process is a function that all studies share times
// one of each alone, and the values say how much of it is shared (Bonilla, Chai, Williams, "Multi-task Gaussian process
// prediction", NIPS 2007, with one correlation between all studies; Swersky, Snoek, Adams, "Multi-task Bayesian
// optimization", NIPS 2013). Whether it is believed is asked anew each time: only as long as it puts the trials of this
// study in a better order, each left out in turn, than the process that knows nothing else (the measure of Feurer,
// Letham, Hutter, Bakshy, "Practical transfer learning for Bayesian optimization", arXiv 1802.02219). So studies of
// something else do no harm. For one objective without constraints. For tune/ only.
#pragma once

#include "tune/gp_fitter.h"
#include "tune/tune.h"

namespace sinew::tune {

bool knows_earlier(const Study& study);

struct JointModel {
  Remembered fit;
  GaussianProcess process;  // its first rows are this study's; asked about this study
};

// `points` and `losses` are this study's; `memory`: of the last joint fit, or null.
JointModel joint_model_of(const std::vector<EarlierStudy>& earlier, std::vector<Axis> axes, const Points& points,
                          std::vector<double> losses, double trials, const Remembered* memory);

// Whether the joint process puts the losses of this study (its first rows) in no worse an order than the other.
bool ranks_better(const GaussianProcess& joint, const GaussianProcess& alone, const std::vector<double>& losses);

}  // namespace sinew::tune
