// Fits a Gaussian process: maximises marginal likelihood times priors by gradient.
//
// The priors are wide log-normal distributions. Length scales are in units of a parameter's whole range.
#include <cmath>
#include <limits>
#include <numbers>

#include "tune/gp.h"
#include "tune/lbfgs.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Prior {
  // of the logarithm of a kernel parameter: middle and spread of the prior, and the bounds of the fit
  double middle, spread, low, high;
};

const Prior kScale = {std::log(3.0), 2.0, std::log(1e-3), std::log(1e3)};
const Prior kNoise = {std::log(1e-4), 3.0, std::log(1e-6), std::log(1.0)};
const Prior kEffect = {std::log(0.3), 2.0, std::log(1e-5), std::log(1e2)};
const Prior kLength = {std::log(0.5), 1.0, std::log(0.02), std::log(20.0)};

const Prior& prior_of(const KernelLayout& at, Index number) {
  if (number == at.scale()) return kScale;
  if (number == at.noise()) return kNoise;
  return number < at.length(0) ? kEffect : kLength;
}

}  // namespace

std::optional<Marginal> marginal_of(const Kernel& kernel, const Points& points, const VectorXd& values) {
  const Index n = values.size();
  Marginal marginal{0, kernel.matrix(points, n), {}};
  MatrixXd factor = marginal.kernel;
  factor.diagonal().array() += kernel.noise();
  Eigen::LLT<Eigen::Ref<MatrixXd>> cholesky(factor);
  if (cholesky.info() != Eigen::Success) return std::nullopt;
  const VectorXd weights = cholesky.solve(values);
  marginal.misfit = 0.5 * values.dot(weights) + factor.diagonal().array().log().sum();
  marginal.pairs = MatrixXd::Identity(n, n);
  cholesky.solveInPlace(marginal.pairs);
  marginal.pairs.noalias() -= weights * weights.transpose();
  return marginal;
}

double misfit(const std::vector<Axis>& axes, const Points& points, const VectorXd& values,
              const VectorXd& log_parameters, VectorXd& gradient) {
  const KernelLayout at{static_cast<Index>(axes.size())};
  const Kernel kernel(axes, log_parameters);
  const Index n = values.size();
  gradient.setZero(at.size());
  auto marginal = marginal_of(kernel, points, values);
  if (!marginal) return std::numeric_limits<double>::infinity();
  double sum = marginal->misfit + 0.5 * static_cast<double>(n) * std::log(2 * std::numbers::pi);
  // d misfit / d parameter = 1/2 sum over pairs of (K^-1 - w w^T) * dK / d parameter.
  const double trace = marginal->pairs.trace();
  marginal->kernel.triangularView<Eigen::Lower>() = marginal->kernel.cwiseProduct(marginal->pairs);
  gradient = 0.5 * kernel.weighted_slopes(points, n, marginal->kernel);
  gradient[at.noise()] = 0.5 * kernel.noise() * trace;
  for (Index i = 0; i < at.size(); ++i) {
    const Prior& prior = prior_of(at, i);
    const double off = (log_parameters[i] - prior.middle) / prior.spread;
    sum += 0.5 * off * off;
    gradient[i] += off / prior.spread;
  }
  return sum;
}

Fit fit_from(const std::vector<Axis>& axes, const Points& points, const VectorXd& values, const VectorXd& start,
             int evaluations) {
  const KernelLayout at{static_cast<Index>(axes.size())};
  VectorXd low(at.size()), high(at.size());
  for (Index i = 0; i < at.size(); ++i) {
    low[i] = prior_of(at, i).low;
    high[i] = prior_of(at, i).high;
  }
  const auto function = [&](const VectorXd& log_parameters, VectorXd& gradient) {
    return misfit(axes, points, values, log_parameters, gradient);
  };
  const Minimum found =
      minimise(function, start, low, high,
               {.most_evaluations = evaluations, .gradient_tolerance = 1e-3, .value_tolerance = 1e-5});
  return {found.x, found.value};
}

std::vector<VectorXd> fit_starts(const std::vector<Axis>& axes) {
  const KernelLayout at{static_cast<Index>(axes.size())};
  const auto start = [&](double scale, double length) {
    VectorXd log_parameters(at.size());
    log_parameters[at.scale()] = std::log(scale);
    log_parameters[at.noise()] = std::log(1e-3);
    for (Index i = 0; i < at.axes; ++i) {
      log_parameters[at.effect(i)] = std::log(1.0 / std::sqrt(static_cast<double>(at.axes)));
      log_parameters[at.length(i)] = std::log(length);
    }
    return log_parameters;
  };
  return {start(10, 0.5), start(0.3, 0.5), start(10, 0.1), start(0.3, 1.5)};
}

}  // namespace sinew::tune
