#include "tune/gp_alignment.h"

#include <cmath>
#include <limits>

#include "tune/gp_fitter.h"
#include "tune/lbfgs.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Prior standard deviation and bound of a shift, as fractions of the range of a parameter.
constexpr double kUsual = 0.1, kFurthest = 0.3;
constexpr int kRounds = 2;  // each round fits the Gaussian process and then shifts the studies
constexpr int kEvaluationsAmong = 15, kEvaluationsOnto = 8;

// Returns the negative log likelihood of the values up to a constant, or infinity if the matrix has no Cholesky factor.
// Adds to column s of `slopes_of_studies` the derivatives by a shift of all points of study s.
double misfit_of(const Kernel& kernel, const Points& points, const VectorXd& values, MatrixXd& slopes_of_studies) {
  const Index n = points.rows(), d = points.cols() - 1;
  const auto marginal = marginal_of(kernel, points, values);
  if (!marginal) return std::numeric_limits<double>::infinity();
  VectorXd row(n);
  MatrixXd slopes;
  for (Index i = 0; i < n; ++i) {
    const VectorXd x = points.row(i).transpose();
    kernel.row(x, points, n, row.data());
    kernel.row_slopes(x, points, n, row.data(), slopes);
    slopes_of_studies.col(static_cast<Index>(x[d])) += slopes.leftCols(d).transpose() * marginal->pairs.col(i);
  }
  return marginal->misfit;
}

// Searches for the most likely shifts, starting from `moves`. `misfit` returns the negative log likelihood and sets its
// gradient; likeliest() adds the prior of the shifts.
VectorXd likeliest(const SmoothFunction& misfit, const std::vector<Axis>& axes, const VectorXd& moves,
                   int evaluations) {
  VectorXd reach(moves.size());
  for (Index k = 0; k < reach.size(); ++k) {
    reach[k] = axes[static_cast<size_t>(k) % axes.size()].category ? 0 : kFurthest;
  }
  const auto function = [&](const VectorXd& now, VectorXd& gradient) {
    const double sum = misfit(now, gradient) + 0.5 * now.squaredNorm() / (kUsual * kUsual);
    gradient += now / (kUsual * kUsual);
    return sum;
  };
  return minimise(function, moves, -reach, reach,
                  {.most_evaluations = evaluations,
                   .gradient_tolerance = 1e-2,
                   .value_tolerance = 1e-4,
                   .longest_step = kUsual / 2})
      .x;
}

// Returns shifts that move the best point of every study to the mean of these best points.
VectorXd bests_together(const std::vector<Axis>& axes, const Points& points, const std::vector<double>& losses,
                        Index studies) {
  const Index d = points.cols() - 1;
  std::vector<Index> best(static_cast<size_t>(studies), -1);
  for (Index i = 0; i < points.rows(); ++i) {
    Index& so_far = best[static_cast<size_t>(points(i, d)) - 1];
    if (so_far < 0 || losses[static_cast<size_t>(i)] < losses[static_cast<size_t>(so_far)]) so_far = i;
  }
  VectorXd moves = VectorXd::Zero(studies * d);
  for (Index axis = 0; axis < d; ++axis) {
    if (axes[static_cast<size_t>(axis)].category) continue;
    double sum = 0, count = 0;
    for (const Index i : best) {
      if (std::isnan(points(i, axis))) continue;  // the parameter is inactive there
      sum += points(i, axis);
      count += 1;
    }
    for (Index s = 0; s < studies; ++s) {
      const double there = points(best[static_cast<size_t>(s)], axis);
      if (!std::isnan(there)) moves[s * d + axis] = sum / count - there;
    }
  }
  return moves;
}

}  // namespace

Alignment Alignment::read(std::span<const double> sampler_state, Index axes) {
  const auto own_shifts = static_cast<Index>(sampler_state.size()) - axes;
  return {Eigen::Map<const VectorXd>(sampler_state.data(), own_shifts),
          Eigen::Map<const VectorXd>(sampler_state.data() + own_shifts, axes)};
}

void Alignment::write(std::vector<double>& sampler_state) const {
  sampler_state.insert(sampler_state.end(), own_shifts.begin(), own_shifts.end());
  sampler_state.insert(sampler_state.end(), common_shift.begin(), common_shift.end());
}

std::vector<Axis> with_study(std::vector<Axis> axes) {
  axes.push_back({true});
  return axes;
}

Points aligned(Points points, const Alignment& alignment) {
  const Index d = points.cols() - 1;
  for (Index i = 0; i < points.rows(); ++i) {
    const auto study = static_cast<Index>(points(i, d));
    if (study > 0)
      points.row(i).head(d) += (alignment.own_shifts.segment((study - 1) * d, d) + alignment.common_shift).transpose();
  }
  return points;
}

Alignment align_earlier_studies(const std::vector<Axis>& axes, const Points& points, const std::vector<double>& losses,
                                Index studies) {
  const Index d = points.cols() - 1;
  Alignment alignment{bests_together(axes, points, losses, studies), VectorXd::Zero(d)};
  const std::vector<Axis> all_axes = with_study(axes);
  for (int round = 0; round < kRounds; ++round) {
    const Points there = aligned(points, alignment);
    const FitRecord fit = Fitter(all_axes, there, static_cast<double>(points.rows()), nullptr).fit(losses, true);
    const Kernel kernel(all_axes, fit.log_parameters);
    const VectorXd values = warp(losses, fit.warp).values;
    const auto misfit = [&](const VectorXd& own_shifts, VectorXd& gradient) {
      MatrixXd slopes = MatrixXd::Zero(d, studies + 1);
      const double sum = misfit_of(kernel, aligned(points, {own_shifts, alignment.common_shift}), values, slopes);
      gradient = Eigen::Map<const VectorXd>(slopes.col(1).data(), own_shifts.size());
      return sum;
    };
    alignment.own_shifts = likeliest(misfit, axes, alignment.own_shifts, kEvaluationsAmong);
  }
  return alignment;
}

Alignment align_with_study(const std::vector<Axis>& axes, const Kernel& kernel, const Points& points,
                           const VectorXd& values, Alignment begun) {
  const Index d = points.cols() - 1, studies = begun.own_shifts.size() / d;
  const auto misfit = [&](const VectorXd& common_shift, VectorXd& gradient) {
    MatrixXd slopes = MatrixXd::Zero(d, studies + 1);
    const double sum = misfit_of(kernel, aligned(points, {begun.own_shifts, common_shift}), values, slopes);
    gradient = -slopes.col(0);  // shifting all earlier studies equals shifting this study the other way
    return sum;
  };
  begun.common_shift = likeliest(misfit, axes, begun.common_shift, kEvaluationsOnto);
  return begun;
}

}  // namespace sinew::tune
