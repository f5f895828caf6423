// Values as a Gaussian process likes them: around 0, a spread around 1, nothing far out.
//
// Losses span orders of magnitude and end in plateaus of diverged trainings; told as they are, a process spends its
// smoothness on them and sees nothing near the best. The worse half is therefore drawn in by its ranks (Song et al.,
// "The Vizier Gaussian process bandit algorithm", 2024), and what is left may be bent by a logarithm, if that makes the
// process explain it better (Snelson, Rasmussen, Ghahramani, "Warped Gaussian processes", NeurIPS 2003). Failed trials
// count as the worst there is. A warp is a pure function of the losses, does not change their order, and does not
// change under a positive affine map of them.
#pragma once

#include <Eigen/Core>
#include <span>

namespace sinew::tune {

enum class WarpKind {
  linear,     // shifted and scaled only
  halfrank,   // the worse half by rank
  bent,       // and a logarithm that begins to bend half a spread from the best
  logarithm,  // or close to it
};

struct Warped {
  Eigen::VectorXd values;  // in the order of the losses
  double log_slopes = 0;   // of the warp at the losses, against halfrank's: what a likelihood of the values lacks
};

// Infinite losses are failures. At least one must be finite.
Warped warp(std::span<const double> losses, WarpKind kind);

}  // namespace sinew::tune
