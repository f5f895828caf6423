#include "tune/gp_warp.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "tune/log_improvement.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// The normal quantile of p in [1/2, 1), by Newton's method on the log distribution function of -z.
double quantile(double p) {
  double z = 0;
  for (int i = 0; i < 60; ++i) {
    const LogImprovement at = log_normal_cdf(-z);
    const double step = (at.value - std::log1p(-p)) / at.slope;
    z += step;
    if (std::abs(step) < 1e-12 * (1 + std::abs(z))) break;
  }
  return z;
}

// Replaces failures by the worst finite loss.
std::vector<double> finite_losses(std::span<const double> losses) {
  double worst = -std::numeric_limits<double>::infinity();
  for (const double loss : losses) {
    if (std::isfinite(loss)) worst = std::max(worst, loss);
  }
  SINEW_CHECK(std::isfinite(worst), losses.size());
  std::vector<double> finite;
  for (const double loss : losses) finite.push_back(std::isfinite(loss) ? loss : worst);
  return finite;
}

// Replaces losses above the median by the normal quantiles of their ranks. Centres the others on the median, and
// divides them by their root mean square distance from it.
VectorXd half_ranked(const std::vector<double>& losses) {
  std::vector<double> sorted = losses;
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  const double median = sorted[(n - 1) / 2];
  double squares = 0;
  size_t below = 0;
  for (; below < n && sorted[below] <= median; ++below) squares += (sorted[below] - median) * (sorted[below] - median);
  const double spread = std::sqrt(squares / static_cast<double>(below));
  VectorXd values(static_cast<Index>(n));
  for (size_t i = 0; i < n; ++i) {
    double& value = values[static_cast<Index>(i)];
    if (losses[i] <= median) {
      value = spread > 0 ? (losses[i] - median) / spread : 0;
    } else {
      const auto first = std::ranges::lower_bound(sorted, losses[i]) - sorted.begin();
      const auto last = std::ranges::upper_bound(sorted, losses[i]) - sorted.begin();
      value = quantile(0.5 * static_cast<double>(first + last) / static_cast<double>(n));
    }
  }
  return values;
}

// Shifts the values to mean 0, divides them by their standard deviation, and returns the standard deviation. If that is
// 0, does not divide and returns 1.
double standardise(VectorXd& values) {
  values.array() -= values.mean();
  const double spread = std::sqrt(values.squaredNorm() / static_cast<double>(values.size()));
  if (!(spread > 0)) return 1;
  values /= spread;
  return spread;
}

}  // namespace

Warped warp(std::span<const double> losses, WarpKind kind) {
  const std::vector<double> finite = finite_losses(losses);
  const auto n = static_cast<Index>(finite.size());
  Warped warped;
  if (kind == WarpKind::linear) {
    warped.values = Eigen::Map<const VectorXd>(finite.data(), n);
    standardise(warped.values);
    return warped;
  }
  warped.values = half_ranked(finite);
  const double spread = standardise(warped.values);
  if (kind == WarpKind::halfrank) return warped;
  // x, the distance from the best in standard deviations of the better half, becomes log(x + bend).
  const double bend = kind == WarpKind::bent ? 0.5 : 0.03;
  const double best = warped.values.minCoeff();
  warped.values = ((warped.values.array() - best) * spread + bend).log();
  warped.log_slopes = static_cast<double>(n) * std::log(spread) - warped.values.sum();
  warped.log_slopes -= static_cast<double>(n) * std::log(standardise(warped.values));
  return warped;
}

}  // namespace sinew::tune
