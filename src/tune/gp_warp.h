// Warps losses to values that suit a Gaussian process: mean 0, standard deviation 1, no outliers.
//
// Losses may span orders of magnitude, and diverged trainings form plateaus of large losses. With raw losses, a
// Gaussian process would adapt its smoothness to these and see no structure near the best. The warp therefore replaces
// the worse half by its ranks (Song et al., "The Vizier Gaussian process bandit algorithm", 2024). It may then bend the
// values by a logarithm, if the Gaussian process then explains them better (Snelson, Rasmussen, Ghahramani, "Warped
// Gaussian processes", NeurIPS 2003). Failed trials count as the worst loss. A warp is a pure function of the losses
// and keeps their order. If all losses are shifted or scaled by a positive factor, the result stays the same.
#pragma once

#include <eigen3/Eigen/Core>
#include <span>

namespace sinew::tune {

enum class WarpKind {
  linear,     // losses are only shifted and scaled
  halfrank,   // the worse half of the losses is replaced by its ranks
  bent,       // halfrank, then a logarithm that begins to bend half a standard deviation from the best
  logarithm,  // halfrank, then nearly a pure logarithm
};

struct Warped {
  Eigen::VectorXd values;  // in the order of the losses
  // The log Jacobian of the step from halfrank to this warp: the sum, over the losses, of the logarithm of its
  // derivative. It is 0 for halfrank, and is not computed for linear. To compare two warps other than linear, add each
  // warp's log_slopes to the log likelihood of its values.
  double log_slopes = 0;
};

// An infinite loss is a failed trial. At least one loss must be finite.
Warped warp(std::span<const double> losses, WarpKind kind);

}  // namespace sinew::tune
