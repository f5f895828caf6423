// Gaussian process regression: predicts a function from its values at some points.
//
// Rasmussen, Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1, with the kernel of gp_kernel.h.
// The prior mean is zero, apart from the constant term of the kernel. The noise is independent. The values should be
// near 0 with a standard deviation near 1 (warp() in gp_warp.h ensures this). A fit maximises the marginal likelihood
// times the priors of the kernel parameters. All functions are pure and single-threaded: on one machine the same points
// give the same bits.
#pragma once

#include <eigen3/Eigen/Cholesky>
#include <optional>
#include <span>

#include "tune/gp_kernel.h"

namespace sinew::tune {

struct Normal {
  double mean = 0, variance = 0;  // the distribution of the function's value at a point, without the noise
};

struct NormalSlopes {
  Eigen::VectorXd mean, variance;  // derivatives by every coordinate; 0 for categories and inactive parameters
};

class GaussianProcess {
 public:
  GaussianProcess(std::vector<Axis> axes, const Eigen::VectorXd& log_parameters, Points points, Eigen::VectorXd values);

  Eigen::Index size() const { return values_.size(); }
  double value(Eigen::Index i) const { return values_[i]; }
  // The coordinates of point i, without those of the context.
  Eigen::VectorXd point(Eigen::Index i) const { return points_.row(i).head(points_.cols() - context_.size()); }
  const Kernel& kernel() const { return kernel_; }
  double log_likelihood() const;
  // Sets coordinates that the Gaussian process appends to every point that it is given from now on.
  void set_context(Eigen::VectorXd context) { context_ = std::move(context); }

  Normal at(const Eigen::VectorXd& x) const;
  Normal at(const Eigen::VectorXd& x, NormalSlopes& slopes) const;
  // The predictions at every row of `points`.
  std::vector<Normal> at_all(const Points& points) const;
  // Adds an observation. Extends the Cholesky factor instead of computing it anew.
  void append(const Eigen::VectorXd& x, double value);
  // The predicted function at the observed points, with the noise removed.
  Eigen::VectorXd smoothed() const { return values_ - kernel_.noise() * weights_; }
  // Leave-one-out predictions: for each observed point, what the Gaussian process would predict there if it did not
  // know that observation, noise included (same book, equations 5.10 to 5.12).
  std::vector<Normal> without_each() const;

 private:
  void solve();
  Eigen::VectorXd whole(const Eigen::VectorXd& x) const;
  Kernel kernel_;
  Points points_;
  Eigen::VectorXd values_;
  Eigen::MatrixXd factor_;   // the Cholesky factor: L of K + noise = L L^T
  Eigen::VectorXd weights_;  // (K + noise)^-1 values
  Eigen::VectorXd context_;
};

// How well a kernel explains the values at some points.
struct Marginal {
  double misfit = 0;       // the negative log likelihood, up to a constant that depends only on the number of values
  Eigen::MatrixXd kernel;  // K without the noise; only the lower half is filled
  // (K + noise)^-1 - w w^T. Multiplying this matrix by the derivative of K, and summing over all pairs of points, gives
  // twice the derivative of the misfit.
  Eigen::MatrixXd pairs;
};
// Returns nullopt if the matrix has no Cholesky factor.
std::optional<Marginal> marginal_of(const Kernel& kernel, const Points& points, const Eigen::VectorXd& values);

// Returns the negative log of likelihood times priors at `log_parameters`, and sets its gradient. The result is
// infinite if the matrix has no Cholesky factor.
double misfit(const std::vector<Axis>& axes, const Points& points, const Eigen::VectorXd& values,
              const Eigen::VectorXd& log_parameters, Eigen::VectorXd& gradient);

struct Fit {
  Eigen::VectorXd log_parameters;
  double misfit = 0;
};

// The best fit that the optimiser finds from one start, with at most this many evaluations.
Fit fit_from(const std::vector<Axis>& axes, const Points& points, const Eigen::VectorXd& values,
             const Eigen::VectorXd& start, int evaluations);
// Starting points for the fit. They combine mostly additive or mostly interacting effects with long or short length
// scales.
std::vector<Eigen::VectorXd> fit_starts(const std::vector<Axis>& axes);

}  // namespace sinew::tune
