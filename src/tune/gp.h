// A Gaussian process: what a function known at some points is likely to be elsewhere.
//
// Rasmussen, Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1, with the kernel of gp_kernel.h,
// no mean beyond the kernel's constant, and independent noise. Values are expected around 0 with a spread around 1
// (gp_warp.h). The fit is the maximum of marginal likelihood times priors. Everything here is a pure function of its
// arguments, single-threaded: the same bits for the same points on one machine.
#pragma once

#include <Eigen/Cholesky>
#include <optional>
#include <span>

#include "tune/gp_kernel.h"

namespace sinew::tune {

struct Normal {
  double mean = 0, variance = 0;  // of the function, without the noise
};

struct NormalSlopes {
  Eigen::VectorXd mean, variance;  // by every coordinate; 0 for categories and what is inactive
};

class GaussianProcess {
 public:
  GaussianProcess(std::vector<Axis> axes, const Eigen::VectorXd& log_parameters, Points points, Eigen::VectorXd values);

  Eigen::Index size() const { return values_.size(); }
  double value(Eigen::Index i) const { return values_[i]; }
  // Without the coordinates of the context.
  Eigen::VectorXd point(Eigen::Index i) const { return points_.row(i).head(points_.cols() - context_.size()); }
  const Kernel& kernel() const { return kernel_; }
  double log_likelihood() const;
  // From now on every point that is asked about or appended has these coordinates behind its own.
  void set_context(Eigen::VectorXd context) { context_ = std::move(context); }

  Normal at(const Eigen::VectorXd& x) const;
  Normal at(const Eigen::VectorXd& x, NormalSlopes& slopes) const;
  // Of every row.
  std::vector<Normal> at_all(const Points& points) const;
  // As if this had been observed too. The factor is extended, not made anew.
  void append(const Eigen::VectorXd& x, double value);
  // What the function is likely to be at the points themselves, the noise taken out.
  Eigen::VectorXd smoothed() const { return values_ - kernel_.noise() * weights_; }
  // For each point what the process would have said of it without it (the same book, 5.10-5.12); with noise.
  std::vector<Normal> without_each() const;

 private:
  void solve();
  Eigen::VectorXd whole(const Eigen::VectorXd& x) const;
  Kernel kernel_;
  Points points_;
  Eigen::VectorXd values_;
  Eigen::MatrixXd factor_;   // L of K + noise = L L^T
  Eigen::VectorXd weights_;  // (K + noise)^-1 values
  Eigen::VectorXd context_;
};

// How well a kernel explains values at points.
struct Marginal {
  double misfit = 0;       // minus the log of the likelihood, up to a constant for so many values
  Eigen::MatrixXd kernel;  // K without noise; the lower half
  Eigen::MatrixXd pairs;   // (K + noise)^-1 - w w^T: what the misfit's slopes weigh those of the kernel with, halved
};
// None where the matrix can not be factored.
std::optional<Marginal> marginal_of(const Kernel& kernel, const Points& points, const Eigen::VectorXd& values);

// Minus the log of likelihood and priors at `log_parameters`, and its gradient; infinite where the matrix can not be
// factored.
double misfit(const std::vector<Axis>& axes, const Points& points, const Eigen::VectorXd& values,
              const Eigen::VectorXd& log_parameters, Eigen::VectorXd& gradient);

struct Fit {
  Eigen::VectorXd log_parameters;
  double misfit = 0;
};

// The best fit found from one beginning with so many evaluations.
Fit fit_from(const std::vector<Axis>& axes, const Points& points, const Eigen::VectorXd& values,
             const Eigen::VectorXd& start, int evaluations);
// Different beginnings worth trying: mostly additive or mostly interacting, long or short lengths.
std::vector<Eigen::VectorXd> fit_starts(const std::vector<Axis>& axes);

}  // namespace sinew::tune
