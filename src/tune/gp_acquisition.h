// Computes acquisition functions on Gaussian processes: the logarithms of expected improvement and of the probability
// of feasibility.
#pragma once

#include "tune/acquisition_search.h"
#include "tune/gp.h"

namespace sinew::tune {

// The logarithm of E[max(0, bound - Y)] for a normal Y, and its derivatives by the mean and by the logarithm of the
// standard deviation.
struct LogBelow {
  double value = 0, by_mean = 0, by_log_spread = 0;
};
LogBelow log_below(double bound, const Normal& normal);

// The log expected improvement below `best`.
class LogExpectedImprovement : public AcquisitionFunction {
 public:
  LogExpectedImprovement(const GaussianProcess& process, double best) : process_(process), best_(best) {}
  std::vector<double> at_all(const Points& points) const override;
  double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const override;

 private:
  const GaussianProcess& process_;
  double best_;
};

// The log probability that all constraints are at most 0 (Gardner et al., "Bayesian optimization with inequality
// constraints", ICML 2014), plus the value of the function `other` unless it is null.
class LogFeasibility : public AcquisitionFunction {
 public:
  LogFeasibility(std::span<const GaussianProcess> constraints, const AcquisitionFunction* other)
      : constraints_(constraints), other_(other) {}
  std::vector<double> at_all(const Points& points) const override;
  double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const override;

 private:
  std::span<const GaussianProcess> constraints_;
  const AcquisitionFunction* other_;
};

// Turns derivatives by the mean and by the log standard deviation into derivatives by the coordinates.
Eigen::VectorXd by_coordinates(const Normal& normal, const NormalSlopes& slopes, double by_mean, double by_log_spread);

}  // namespace sinew::tune
