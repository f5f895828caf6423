// The surrogate model of a study: one Gaussian process for every objective and for every constraint.
//
// All Gaussian processes know the same trials: those with values, and failed ones, which count as the worst value. If
// there are more than kMostPoints such trials, they know only the best and the newest ones. The fitted kernel
// parameters are stored in the `sampler_state` of the suggestion that is made with them, and the next fit starts from
// them. A fit is therefore cheap, and still depends only on the trial history.
#pragma once

#include <memory>
#include <optional>

#include "tune/gp.h"
#include "tune/gp_warp.h"
#include "tune/tune.h"

namespace sinew::tune {

struct Surrogate {
  std::vector<GaussianProcess> objectives;  // one process for each objective, over warped losses
  // The Gaussian processes of scaled constraint values. A point is feasible if all its values are at most 0.
  std::vector<GaussianProcess> constraints;
  std::vector<const Trial*> trials;  // the trials in the first rows of the Gaussian processes
  Eigen::Index known = 0;            // the number of these trials; rows of earlier studies follow them
  Eigen::Index fantasies = 0;  // the number of rows at the end: running trials with values drawn from the processes
  std::vector<double> sampler_state;

  Eigen::VectorXd row(Eigen::Index i) const { return objectives[0].point(i); }
  bool feasible(Eigen::Index i) const { return Study::violation(*trials[static_cast<size_t>(i)]) == 0; }
  // Returns the objective values drawn for running trials, one vector for each trial. Leaves out a trial with a drawn
  // constraint value above 0, because that trial is probably infeasible.
  std::vector<std::vector<double>> feasible_fantasies() const;
};

// Returns nullopt in three cases: fewer than `least` trials have started, too few have ended, or no known trial has
// finite values of all objectives. Two known trials suffice if a model with earlier studies ranks them no worse than a
// model without.
std::optional<Surrogate> fit_surrogate(const Study& study, size_t least);

}  // namespace sinew::tune
