#include "tune/gp.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace sinew::tune {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr double kLeastVariance = 1e-12;

}  // namespace

GaussianProcess::GaussianProcess(std::vector<Axis> axes, const VectorXd& log_parameters, Points points, VectorXd values)
    : kernel_(std::move(axes), log_parameters), points_(std::move(points)), values_(std::move(values)) {
  factor_ = kernel_.matrix(points_, size());
  factor_.diagonal().array() += kernel_.noise();
  Eigen::LLT<Eigen::Ref<MatrixXd>> in_place(factor_);
  // Rounding alone can make the matrix of nearly equal points indefinite. The loop then adds as little noise as makes
  // it positive definite.
  for (double extra = 1e-8; in_place.info() != Eigen::Success; extra *= 10) {
    factor_ = kernel_.matrix(points_, size());
    factor_.diagonal().array() += kernel_.noise() + extra * factor_(0, 0);
    in_place.compute(factor_);
  }
  solve();
}

void GaussianProcess::solve() {
  weights_ = factor_.triangularView<Eigen::Lower>().solve(values_);
  factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(weights_);
}

double GaussianProcess::log_likelihood() const {
  return -0.5 * values_.dot(weights_) - factor_.diagonal().array().log().sum() -
         0.5 * static_cast<double>(size()) * std::log(2 * std::numbers::pi);
}

VectorXd GaussianProcess::whole(const VectorXd& x) const {
  VectorXd both(x.size() + context_.size());
  both << x, context_;
  return both;
}

Normal GaussianProcess::at(const VectorXd& own) const {
  const VectorXd x = whole(own);
  VectorXd row(size());
  kernel_.row(x, points_, size(), row.data());
  const double mean = row.dot(weights_);
  factor_.triangularView<Eigen::Lower>().solveInPlace(row);
  return {mean, std::max(kernel_.variance(x) - row.squaredNorm(), kLeastVariance)};
}

Normal GaussianProcess::at(const VectorXd& own, NormalSlopes& slopes) const {
  const VectorXd x = whole(own);
  VectorXd row(size());
  kernel_.row(x, points_, size(), row.data());
  MatrixXd by_x;
  kernel_.row_slopes(x, points_, size(), row.data(), by_x);
  const double mean = row.dot(weights_);
  VectorXd solved = factor_.triangularView<Eigen::Lower>().solve(row);
  const double variance = kernel_.variance(x) - solved.squaredNorm();
  factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(solved);
  slopes.mean.noalias() = by_x.transpose() * weights_;
  slopes.variance.noalias() = -2 * (by_x.transpose() * solved);
  if (variance < kLeastVariance) slopes.variance.setZero();
  slopes.mean.conservativeResize(own.size());
  slopes.variance.conservativeResize(own.size());
  return {mean, std::max(variance, kLeastVariance)};
}

std::vector<Normal> GaussianProcess::at_all(const Points& points) const {
  MatrixXd rows(size(), points.rows());
  std::vector<Normal> all(static_cast<size_t>(points.rows()));
  for (Index i = 0; i < points.rows(); ++i) {
    const VectorXd x = whole(points.row(i).transpose());
    kernel_.row(x, points_, size(), rows.col(i).data());
    all[static_cast<size_t>(i)] = {rows.col(i).dot(weights_), kernel_.variance(x)};
  }
  factor_.triangularView<Eigen::Lower>().solveInPlace(rows);
  for (Index i = 0; i < points.rows(); ++i) {
    Normal& one = all[static_cast<size_t>(i)];
    one.variance = std::max(one.variance - rows.col(i).squaredNorm(), kLeastVariance);
  }
  return all;
}

void GaussianProcess::append(const VectorXd& own, double value) {
  const VectorXd x = whole(own);
  const Index n = size();
  VectorXd row(n);
  kernel_.row(x, points_, n, row.data());
  factor_.triangularView<Eigen::Lower>().solveInPlace(row);
  const double variance = kernel_.variance(x);
  const double left = variance + kernel_.noise() - row.squaredNorm();
  Points more(n + 1, points_.cols());
  more << points_, x.transpose();
  points_ = std::move(more);
  VectorXd values(n + 1);
  values << values_, value;
  values_ = std::move(values);
  MatrixXd grown = MatrixXd::Zero(n + 1, n + 1);
  grown.topLeftCorner(n, n) = factor_;
  grown.row(n).head(n) = row.transpose();
  grown(n, n) = std::sqrt(std::max(left, 1e-8 * variance));
  factor_ = std::move(grown);
  solve();
}

std::vector<Normal> GaussianProcess::without_each() const {
  const MatrixXd inverse_factor = factor_.triangularView<Eigen::Lower>().solve(MatrixXd::Identity(size(), size()));
  std::vector<Normal> all;
  for (Index i = 0; i < size(); ++i) {
    const double variance = 1 / inverse_factor.col(i).squaredNorm();
    all.push_back({values_[i] - weights_[i] * variance, variance});
  }
  return all;
}

}  // namespace sinew::tune
