// Transfer learning: one joint Gaussian process of this study and the earlier ones.
//
// The kernel gets the study as one more category. The Gaussian process then models a function that all studies share
// times a function of each study alone, and the fit decides how much they share (Bonilla, Chai, Williams, "Multi-task
// Gaussian process prediction", NIPS 2007, with the same correlation between any two studies; Swersky, Snoek, Adams,
// "Multi-task Bayesian optimization", NIPS 2013). The points of earlier studies are shifted to where the studies agree
// best (gp_alignment.h).
//
// Before each suggestion, ranks_better() decides whether to use the joint process. It is used only if its leave-one-out
// predictions rank the trials of this study no worse than the process that knows this study alone (the measure of
// Feurer, Letham, Hutter, Bakshy, "Practical transfer learning for Bayesian optimization", arXiv 1802.02219). Unrelated
// studies therefore do no harm. This works only for one objective without constraints. Private to tune/.
#pragma once

#include "tune/gp_alignment.h"
#include "tune/gp_fitter.h"
#include "tune/tune.h"

namespace sinew::tune {

// Returns how many earlier studies a joint process of this study can use: none if there are several objectives or
// constraints.
Eigen::Index usable_earlier_studies(const Study& study);

struct JointFit {
  FitRecord numbers;
  Alignment alignment;

  static size_t size(Eigen::Index axes, Eigen::Index studies);  // `axes` does not count the study
  static JointFit read(std::span<const double> sampler_state, Eigen::Index axes);
  void write(std::vector<double>& sampler_state) const;
};

struct JointModel {
  JointFit fit;
  GaussianProcess process;  // the first rows are the trials of this study; the context is this study
};

// `points` and `losses` are those of this study, and `trials` is its number of known trials. `memory` is the last joint
// fit, or null.
JointModel joint_model_of(const std::vector<EarlierStudy>& earlier, const std::vector<Axis>& axes, const Points& points,
                          std::vector<double> losses, double trials, const JointFit* memory);

// Returns whether `joint` ranks the losses of this study no worse than `alone` does. This study's trials are the first
// rows of `joint`.
bool ranks_better(const GaussianProcess& joint, const GaussianProcess& alone, const std::vector<double>& losses);

}  // namespace sinew::tune
