// Compares the Gaussian process with its formulas, computed with dense inverses. Compares its gradients with finite
// differences.
#include "tune/gp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <eigen3/Eigen/LU>
#include <numbers>

#include "base/random.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kAxes = 4;
const std::vector<Axis> kMixed = {{false}, {true}, {false}, {false}};  // the last axis is inactive in every third point

struct Sample {
  Points points;
  VectorXd values, log_parameters;
};

VectorXd some_point(RandomStream& random, Index i) {
  VectorXd x(kAxes);
  x << random.uniform(), static_cast<double>(random.below(3)) / 3, random.uniform(), random.uniform();
  if (i % 3 == 0) x[3] = std::nan("");
  return x;
}

Sample sample_of(uint64_t seed, Index n) {
  RandomStream random(random_key({seed}));
  Sample sample{Points(n, kAxes), VectorXd(n), VectorXd(KernelLayout{kAxes}.size())};
  for (Index i = 0; i < n; ++i) {
    sample.points.row(i) = some_point(random, i).transpose();
    sample.values[i] = random.normal();
  }
  for (double& log : sample.log_parameters) log = random.uniform(-2, 0.5);
  sample.log_parameters[KernelLayout{kAxes}.noise()] = -5;
  return sample;
}

// The kernel as gp_kernel.h defines it.
double plain_kernel(const VectorXd& log_parameters, const VectorXd& a, const VectorXd& b) {
  const KernelLayout at{kAxes};
  const double s = std::exp(log_parameters[at.scale()]);
  double product = s;
  for (Index i = 0; i < kAxes; ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) continue;
    const double r = std::sqrt(5.0) * std::abs(a[i] - b[i]) / std::exp(log_parameters[at.length(i)]);
    const double matern = (1 + r + r * r / 3) * std::exp(-r), same = a[i] == b[i] ? 1 : 0;
    product *=
        1 + std::exp(log_parameters[at.effect(i)]) / s * (kMixed[static_cast<size_t>(i)].category ? same : matern);
  }
  return product;
}

MatrixXd plain_matrix(const Sample& sample) {
  const Index n = sample.values.size();
  MatrixXd k(n, n);
  for (Index p = 0; p < n; ++p) {
    for (Index q = 0; q < n; ++q) {
      k(p, q) = plain_kernel(sample.log_parameters, sample.points.row(p).transpose(), sample.points.row(q).transpose());
    }
    k(p, p) += std::exp(sample.log_parameters[KernelLayout{kAxes}.noise()]);
  }
  return k;
}

Normal plain_posterior(const Sample& sample, const VectorXd& x) {
  const MatrixXd inverse = plain_matrix(sample).inverse();
  VectorXd k(sample.values.size());
  for (Index i = 0; i < k.size(); ++i) k[i] = plain_kernel(sample.log_parameters, x, sample.points.row(i).transpose());
  return {k.dot(inverse * sample.values), plain_kernel(sample.log_parameters, x, x) - k.dot(inverse * k)};
}

TEST(GaussianProcess, MatchesTheFormulas) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Sample sample = sample_of(seed, 23);
    const GaussianProcess process(kMixed, sample.log_parameters, sample.points, sample.values);
    RandomStream random(random_key({seed, 99}));
    Points others(6, kAxes);
    for (Index i = 0; i < 6; ++i) others.row(i) = some_point(random, i).transpose();
    const std::vector<Normal> all = process.at_all(others);
    for (Index i = 0; i < 6; ++i) {
      const VectorXd x = others.row(i).transpose();
      const Normal plain = plain_posterior(sample, x), one = process.at(x);
      EXPECT_NEAR(one.mean, plain.mean, 1e-8);
      EXPECT_NEAR(one.variance, plain.variance, 1e-8);
      EXPECT_NEAR(all[static_cast<size_t>(i)].mean, plain.mean, 1e-8);
      EXPECT_NEAR(all[static_cast<size_t>(i)].variance, plain.variance, 1e-8);
    }
  }
}

TEST(GaussianProcess, TheKernelIsPositiveDefinite) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const MatrixXd k = plain_matrix(sample_of(seed, 30));
    EXPECT_EQ(k.llt().info(), Eigen::Success) << seed;
  }
}

TEST(GaussianProcess, AppendingEqualsKnowingAllFromTheStart) {
  const Sample sample = sample_of(7, 20);
  const GaussianProcess whole(kMixed, sample.log_parameters, sample.points, sample.values);
  GaussianProcess grown(kMixed, sample.log_parameters, sample.points.topRows(12), sample.values.head(12));
  for (Index i = 12; i < 20; ++i) grown.append(sample.points.row(i).transpose(), sample.values[i]);
  RandomStream random(random_key({8}));
  for (Index i = 0; i < 10; ++i) {
    const VectorXd x = some_point(random, i);
    EXPECT_NEAR(grown.at(x).mean, whole.at(x).mean, 1e-9);
    EXPECT_NEAR(grown.at(x).variance, whole.at(x).variance, 1e-9);
  }
}

TEST(GaussianProcess, SlopesMatchFiniteDifferences) {
  const Sample sample = sample_of(11, 25);
  const GaussianProcess process(kMixed, sample.log_parameters, sample.points, sample.values);
  RandomStream random(random_key({12}));
  for (Index k = 0; k < 10; ++k) {
    const VectorXd x = some_point(random, k);
    NormalSlopes slopes;
    process.at(x, slopes);
    for (const Index axis : {0, 2, 3}) {
      if (std::isnan(x[axis])) {
        EXPECT_EQ(slopes.mean[axis], 0);
        continue;
      }
      VectorXd up = x, down = x;
      up[axis] += 1e-5, down[axis] -= 1e-5;
      EXPECT_NEAR(slopes.mean[axis], (process.at(up).mean - process.at(down).mean) / 2e-5, 1e-4);
      EXPECT_NEAR(slopes.variance[axis], (process.at(up).variance - process.at(down).variance) / 2e-5, 1e-4);
    }
    EXPECT_EQ(slopes.mean[1], 0);
  }
}

TEST(GaussianProcess, TheMisfitMatchesTheLikelihoodAndItsGradientMatchesFiniteDifferences) {
  for (uint64_t seed = 21; seed <= 24; ++seed) {
    Sample sample = sample_of(seed, 18);
    const KernelLayout at{kAxes};
    VectorXd gradient, ignored;
    misfit(kMixed, sample.points, sample.values, sample.log_parameters, gradient);
    for (Index i = 0; i < at.size(); ++i) {
      VectorXd up = sample.log_parameters, down = sample.log_parameters;
      up[i] += 1e-5, down[i] -= 1e-5;
      const double slope = (misfit(kMixed, sample.points, sample.values, up, ignored) -
                            misfit(kMixed, sample.points, sample.values, down, ignored)) /
                           2e-5;
      EXPECT_NEAR(gradient[i], slope, 1e-4 * (1 + std::abs(slope))) << "number " << i;
    }
    // The priors do not depend on the values, so the difference of two misfits is the difference of the negative log
    // likelihoods.
    const MatrixXd k = plain_matrix(sample);
    const auto likelihood = [&](const VectorXd& y) {
      return -0.5 * y.dot(k.inverse() * y) - 0.5 * std::log(k.determinant()) - 9 * std::log(2 * std::numbers::pi);
    };
    const GaussianProcess process(kMixed, sample.log_parameters, sample.points, sample.values);
    EXPECT_NEAR(process.log_likelihood(), likelihood(sample.values), 1e-7);
    const VectorXd zero = VectorXd::Zero(18);
    EXPECT_NEAR(misfit(kMixed, sample.points, sample.values, sample.log_parameters, ignored) -
                    misfit(kMixed, sample.points, zero, sample.log_parameters, ignored),
                likelihood(zero) - likelihood(sample.values), 1e-7);
  }
}

TEST(GaussianProcess, AFitFindsTheRelevantParametersAndIsRepeatable) {
  RandomStream random(random_key({31}));
  Points points(40, 3);
  VectorXd values(40);
  for (Index i = 0; i < 40; ++i) {
    for (Index k = 0; k < 3; ++k) points(i, k) = random.uniform();
    values[i] = std::sin(6 * points(i, 0)) + 2 * points(i, 1);  // the third axis has no effect
  }
  values.array() -= values.mean();
  const std::vector<Axis> axes(3);
  const KernelLayout at{3};
  const Fit fit = fit_from(axes, points, values, fit_starts(axes)[0], 60);
  EXPECT_GT(fit.log_parameters[at.effect(0)], fit.log_parameters[at.effect(2)] + 1);
  EXPECT_GT(fit.log_parameters[at.effect(1)], fit.log_parameters[at.effect(2)] + 1);
  EXPECT_EQ(fit.log_parameters, fit_from(axes, points, values, fit_starts(axes)[0], 60).log_parameters);
  const GaussianProcess process(axes, fit.log_parameters, points, values);
  VectorXd x(3);
  x << 0.4, 0.6, 0.5;
  EXPECT_NEAR(process.at(x).mean - process.at(VectorXd::Constant(3, 0.5)).mean,
              std::sin(2.4) + 1.2 - std::sin(3.0) - 1.0, 0.05);
}

TEST(GaussianProcess, EqualPointsDoNotBreakIt) {
  Points points = Points::Constant(5, 2, 0.5);
  VectorXd log_parameters(KernelLayout{2}.size());
  log_parameters << 5, -13.8, 0, 0, 0, 0;
  const GaussianProcess process(std::vector<Axis>(2), log_parameters, points, VectorXd::Constant(5, 1.0));
  EXPECT_NEAR(process.at(VectorXd::Constant(2, 0.5)).mean, 1, 1e-3);
}

}  // namespace
}  // namespace sinew::tune
