// Implements the kernel. The loops over pairs of points have neither branches nor calls, so that the compiler
// vectorises them.
#include "tune/gp_kernel.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Under ThreadSanitizer there are no clones, because the dynamic loader would choose a clone before ThreadSanitizer is
// initialised. clang compiles the plain function, too.
#if defined(__SANITIZE_THREAD__) || defined(__clang__)
#define SINEW_CLONES
#else
#define SINEW_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif

// exp(-t) for t >= 0 with a relative error of 1e-15: 2^k times a Taylor polynomial on |z| <= log(2) / 2.
inline double exp_of_minus(double t) {
  constexpr double kShift = 0x1.8p52;
  const double bounded = t < 700 ? t : 700;
  const double shifted = bounded * -1.4426950408889634 + kShift;  // the low bits hold round(-t / log 2)
  const double k = shifted - kShift;
  const double z = (-bounded - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  double p = 1.0 / 39916800;
  p = p * z + 1.0 / 3628800;
  p = p * z + 1.0 / 362880;
  p = p * z + 1.0 / 40320;
  p = p * z + 1.0 / 5040;
  p = p * z + 1.0 / 720;
  p = p * z + 1.0 / 120;
  p = p * z + 1.0 / 24;
  p = p * z + 1.0 / 6;
  p = p * z + 0.5;
  p = p * z + 1;
  p = p * z + 1;
  const uint64_t power = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
  return p * std::bit_cast<double>(power);
}

// The Matern 5/2 function. NaN, from an inactive parameter, gives 0, because every comparison with NaN is false.
inline double matern(double r) {
  const double m = (1 + r + r * r * (1.0 / 3)) * exp_of_minus(r);
  return r >= 0 ? m : 0.0;
}

// -r * dm/dr: the derivative of matern() by the logarithm of the length scale.
inline double matern_slope(double r) {
  const double m = r * r * (1 + r) * (1.0 / 3) * exp_of_minus(r);
  return r >= 0 ? m : 0.0;
}

SINEW_CLONES void multiply_numbers(const double* column, double x, double inverse, double ratio, Index n, double* out) {
#pragma GCC ivdep
  for (Index p = 0; p < n; ++p) out[p] *= 1 + ratio * matern(std::abs(column[p] - x) * inverse);
}

SINEW_CLONES void multiply_categories(const double* column, double x, double ratio, Index n, double* out) {
#pragma GCC ivdep
  for (Index p = 0; p < n; ++p) out[p] *= column[p] == x ? 1 + ratio : 1.0;
}

SINEW_CLONES void slopes_of_numbers(const double* column, double x, double inverse, double ratio, const double* values,
                                    Index n, double* out) {
#pragma GCC ivdep
  for (Index p = 0; p < n; ++p) {
    const double apart = (x - column[p]) * inverse, r = std::abs(apart);
    const double e = exp_of_minus(r);
    const double m = (1 + r + r * r * (1.0 / 3)) * e, slope = -(1.0 / 3) * apart * (1 + r) * e * inverse;
    const double by_x = values[p] * ratio * slope / (1 + ratio * m);
    out[p] = r >= 0 ? by_x : 0.0;
  }
}

// Adds two sums over a column of pairs to `sums`. The first is the sum of weighted * ratio * m / (1 + ratio * m). The
// second has, instead of the m in the numerator, the derivative of m by the logarithm of the length scale.
SINEW_CLONES void sum_numbers(const double* column, double x, double inverse, double ratio, const double* weighted,
                              Index n, double* sums) {
  double effects[8] = {}, lengths[8] = {};
  Index p = 0;
  for (; p + 8 <= n; p += 8) {
#pragma GCC ivdep
    for (Index j = 0; j < 8; ++j) {
      const double r = std::abs(column[p + j] - x) * inverse;
      const double m = ratio * matern(r);
      const double share = weighted[p + j] / (1 + m);
      effects[j] += share * m;
      lengths[j] += share * ratio * matern_slope(r);
    }
  }
  for (; p < n; ++p) {
    const double r = std::abs(column[p] - x) * inverse;
    const double m = ratio * matern(r);
    const double share = weighted[p] / (1 + m);
    effects[0] += share * m;
    lengths[0] += share * ratio * matern_slope(r);
  }
  for (Index j = 0; j < 8; ++j) sums[0] += effects[j], sums[1] += lengths[j];
}

double sum_categories(const double* column, double x, double ratio, const double* weighted, Index n) {
  double sum = 0;
  for (Index p = 0; p < n; ++p) sum += column[p] == x ? weighted[p] : 0.0;
  return sum * ratio / (1 + ratio);
}

}  // namespace

Kernel::Kernel(std::vector<Axis> axes, const VectorXd& log_parameters) : axes_(std::move(axes)) {
  const KernelLayout at{static_cast<Index>(axes_.size())};
  scale_ = std::exp(log_parameters[at.scale()]);
  noise_ = std::exp(log_parameters[at.noise()]);
  for (Index i = 0; i < at.axes; ++i) {
    ratio_.push_back(std::exp(log_parameters[at.effect(i)] - log_parameters[at.scale()]));
    inverse_.push_back(std::sqrt(5.0) * std::exp(-log_parameters[at.length(i)]));
  }
}

double Kernel::variance(const VectorXd& x) const {
  double product = scale_;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!std::isnan(x[static_cast<Index>(i)])) product *= 1 + ratio_[i];
  }
  return product;
}

void Kernel::row(const VectorXd& x, const Points& points, Index count, double* out) const {
  std::fill_n(out, count, scale_);
  for (size_t i = 0; i < axes_.size(); ++i) {
    const auto axis = static_cast<Index>(i);
    const double* column = points.col(axis).data();
    if (std::isnan(x[axis])) continue;
    if (axes_[i].category) {
      multiply_categories(column, x[axis], ratio_[i], count, out);
    } else {
      multiply_numbers(column, x[axis], inverse_[i], ratio_[i], count, out);
    }
  }
}

void Kernel::row_slopes(const VectorXd& x, const Points& points, Index count, const double* values,
                        MatrixXd& out) const {
  out.setZero(count, static_cast<Index>(axes_.size()));
  for (size_t i = 0; i < axes_.size(); ++i) {
    const auto axis = static_cast<Index>(i);
    if (axes_[i].category || std::isnan(x[axis])) continue;
    slopes_of_numbers(points.col(axis).data(), x[axis], inverse_[i], ratio_[i], values, count, out.col(axis).data());
  }
}

MatrixXd Kernel::matrix(const Points& points, Index count) const {
  MatrixXd full(count, count);
  for (Index q = 0; q < count; ++q) {
    const VectorXd x = points.row(q).transpose();
    double* column = full.col(q).data();
    std::fill_n(column + q, count - q, scale_);
    for (size_t i = 0; i < axes_.size(); ++i) {
      const auto axis = static_cast<Index>(i);
      const double* values = points.col(axis).data() + q;
      if (std::isnan(x[axis])) continue;
      if (axes_[i].category) {
        multiply_categories(values, x[axis], ratio_[i], count - q, column + q);
      } else {
        multiply_numbers(values, x[axis], inverse_[i], ratio_[i], count - q, column + q);
      }
    }
  }
  return full;
}

VectorXd Kernel::weighted_slopes(const Points& points, Index count, const MatrixXd& weighted) const {
  const KernelLayout at{static_cast<Index>(axes_.size())};
  VectorXd slopes = VectorXd::Zero(at.size());
  double total = 0;
  for (Index q = 0; q < count; ++q) {
    // A pair of different points counts twice, once in either order. A point with itself counts once.
    const double* later = weighted.col(q).data() + q + 1;
    const double self = weighted(q, q);
    const Index n = count - q - 1;
    for (Index p = 0; p < n; ++p) total += 2 * later[p];
    total += self;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const auto axis = static_cast<Index>(i);
      const double x = points(q, axis);
      if (std::isnan(x)) continue;
      const double* column = points.col(axis).data() + q + 1;
      slopes[at.effect(axis)] += self * ratio_[i] / (1 + ratio_[i]);
      if (axes_[i].category) {
        slopes[at.effect(axis)] += 2 * sum_categories(column, x, ratio_[i], later, n);
        continue;
      }
      double sums[2] = {};
      sum_numbers(column, x, inverse_[i], ratio_[i], later, n, sums);
      slopes[at.effect(axis)] += 2 * sums[0];
      slopes[at.length(axis)] += 2 * sums[1];
    }
  }
  slopes[at.scale()] = total;
  for (Index i = 0; i < at.axes; ++i) slopes[at.scale()] -= slopes[at.effect(i)];
  return slopes;
}

}  // namespace sinew::tune
