// Warps losses to values that suit a Gaussian process: mean 0, standard deviation 1, no outliers.
//
// Losses may span orders of magnitude and end in plateaus of diverged trainings. With raw losses, a process would adapt
// its smoothness to those and see no structure near the best. The warp therefore replaces the worse half by its ranks
// (Song et al., "The Vizier Gaussian process bandit algorithm", 2024). It may then bend the values by a logarithm, if
// the process explains them better that way (Snelson, Rasmussen, Ghahramani, "Warped Gaussian processes", NeurIPS
// 2003). Failed trials count as the worst loss. A warp is a pure function of the losses. It keeps their order, and a
// positive affine map of all losses does not change it.
#pragma once

#include <eigen3/Eigen/Core>
#include <span>

namespace sinew::tune {

enum class WarpKind {
  linear,     // only shifted and scaled
  halfrank,   // the worse half replaced by its ranks
  bent,       // like halfrank, then a logarithm that begins to bend half a deviation from the best
  logarithm,  // like halfrank, then nearly a pure logarithm
};

struct Warped {
  Eigen::VectorXd values;  // in the order of the losses
  // Log of the warp's derivatives at the losses, relative to halfrank: to add when likelihoods of different warps are
  // compared.
  double log_slopes = 0;
};

// An infinite loss is a failed trial. At least one loss must be finite.
Warped warp(std::span<const double> losses, WarpKind kind);

}  // namespace sinew::tune
