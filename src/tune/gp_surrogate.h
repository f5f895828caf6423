// What the record of a study tells: a Gaussian process for every objective and every constraint.
//
// All processes know the same trials: those that ended with values, and those that failed (the worst value there is).
// Beyond kMostPoints they know the best ones and the newest ones. The numbers they were fitted by go into the
// sampler_state of the suggestion made with them and are where the next fit begins, so a fit is cheap, and a function
// of the record.
#pragma once

#include <memory>
#include <optional>

#include "tune/gp.h"
#include "tune/gp_warp.h"
#include "tune/tune.h"

namespace sinew::tune {

struct Surrogate {
  std::vector<GaussianProcess> objectives;   // of warped losses
  std::vector<GaussianProcess> constraints;  // of squashed ones; at most 0 is feasible
  std::vector<const Trial*> trials;          // behind the first rows of the processes
  Eigen::Index known = 0;                    // rows of ended trials; then those of earlier studies
  Eigen::Index fantasies = 0;                // the last rows: running trials, as they may end
  std::vector<double> sampler_state;

  Eigen::VectorXd row(Eigen::Index i) const { return objectives[0].point(i); }
  bool feasible(Eigen::Index i) const { return Study::violation(*trials[static_cast<size_t>(i)]) == 0; }
  // What the running trials are fantasies to be worth, those that are feasible: one row a trial.
  std::vector<std::vector<double>> feasible_fantasies() const;
};

// None as long as fewer than `least` trials have begun, hardly any has ended, or none of them with a finite value of
// every objective.
std::optional<Surrogate> fit_surrogate(const Study& study, size_t least);

}  // namespace sinew::tune
