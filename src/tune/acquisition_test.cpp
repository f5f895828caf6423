// Compares expected improvement with numerical integration, its far tails with their asymptotic series, and gradients
// with finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tune/acquisition_search.h"
#include "tune/gp_acquisition.h"
#include "tune/log_improvement.h"
#include "tune/multi_objective.h"

namespace sinew::tune {
namespace {

// E[max(0, bound - Y)] by Simpson's rule, from 14 standard deviations below the lower of bound and mean up to bound.
double integrated(double bound, double mean, double spread) {
  constexpr int kSteps = 20000;
  const double low = std::min(bound, mean) - 14 * spread;
  const double step = (bound - low) / kSteps;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double y = low + i * step, z = (y - mean) / spread;
    const double density = std::exp(-0.5 * z * z) / (spread * std::sqrt(2 * std::numbers::pi));
    sum += (i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2) * (bound - y) * density;
  }
  return sum * step / 3;
}

TEST(LogImprovement, MatchesNumericalIntegration) {
  for (const double bound : {-6.0, -3.0, -1.1, -0.9, 0.0, 0.7, 4.0}) {
    for (const double spread : {0.1, 1.0, 3.0}) {
      const double direct = integrated(bound, 0.2, spread);
      if (direct < 1e-250) continue;
      EXPECT_NEAR(log_below(bound, {0.2, spread * spread}).value, std::log(direct), 1e-6) << bound << ' ' << spread;
    }
  }
}

TEST(LogImprovement, IsAccurateInTheTailsAndContinuous) {
  for (const double z : {-60.0, -200.0, -1e4, -1e8}) {
    const double series = -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi) - 2 * std::log(-z);
    EXPECT_NEAR(log_improvement(z).value, series, 1e-3 + 1e-15 * z * z) << z;
    EXPECT_NEAR(log_improvement(z).slope, -z, 0.05 * -z);
  }
  for (const double seam : {-50.0, -1.0, -5 * std::numbers::sqrt2}) {
    EXPECT_NEAR(log_improvement(seam - 1e-9).value, log_improvement(seam + 1e-9).value, 1e-6);
    EXPECT_NEAR(log_improvement(seam - 1e-9).slope, log_improvement(seam + 1e-9).slope, 1e-6);
    EXPECT_NEAR(log_normal_cdf(seam - 1e-9).value, log_normal_cdf(seam + 1e-9).value, 1e-6);
  }
}

TEST(LogImprovement, SlopesMatchFiniteDifferences) {
  for (double z = -30; z < 6; z += 0.37) {
    const double h = 1e-5;
    EXPECT_NEAR(log_improvement(z).slope, (log_improvement(z + h).value - log_improvement(z - h).value) / (2 * h),
                1e-5 * (1 + std::abs(z)));
    EXPECT_NEAR(log_normal_cdf(z).slope, (log_normal_cdf(z + h).value - log_normal_cdf(z - h).value) / (2 * h),
                1e-5 * (1 + std::abs(z)));
    EXPECT_NEAR(std::exp(log_normal_cdf(z).value), 0.5 * std::erfc(-z / std::numbers::sqrt2), 1e-12);
  }
}

// A Gaussian process over a square, with random observations.
GaussianProcess process_of(uint64_t seed) {
  RandomStream random(random_key({seed}));
  Points points(12, 2);
  Eigen::VectorXd values(12), logs(6);
  for (Eigen::Index i = 0; i < 12; ++i) {
    points(i, 0) = random.uniform();
    points(i, 1) = random.uniform();
    values[i] = random.normal();
  }
  logs << 0, -6, -0.5, 0, -1, -0.7;
  return {std::vector<Axis>(2), logs, points, values};
}

void expect_slopes_of_differences(const AcquisitionFunction& score, uint64_t seed) {
  RandomStream random(random_key({seed, 5}));
  for (int k = 0; k < 8; ++k) {
    Eigen::VectorXd x(2), slope(2), ignored(2);
    x << random.uniform(), random.uniform();
    const double value = score.at(x, slope);
    Points one(1, 2);
    one.row(0) = x.transpose();
    EXPECT_NEAR(score.at_all(one)[0], value, 1e-6 * (1 + std::abs(value)));
    for (Eigen::Index axis = 0; axis < 2; ++axis) {
      Eigen::VectorXd up = x, down = x;
      up[axis] += 1e-6, down[axis] -= 1e-6;
      const double difference = (score.at(up, ignored) - score.at(down, ignored)) / 2e-6;
      EXPECT_NEAR(slope[axis], difference, 1e-3 * (1 + std::abs(difference)));
    }
  }
}

TEST(Scores, SlopesMatchFiniteDifferences) {
  const std::vector<GaussianProcess> two = {process_of(1), process_of(2)};
  const LogExpectedImprovement improvement(two[0], -1);
  expect_slopes_of_differences(improvement, 1);
  expect_slopes_of_differences(LogFeasibility(two, nullptr), 2);
  expect_slopes_of_differences(LogFeasibility(std::span(two).subspan(1), &improvement), 3);
  expect_slopes_of_differences(
      LogHypervolumeImprovement(two, free_boxes({{-1, 0.5}, {0, -0.5}, {0.7, -1}}, {1.5, 1.5})), 4);
}

// A function of one coordinate with its maximum at `place`.
struct Peak : AcquisitionFunction {
  explicit Peak(double place) : place_(place) {}
  std::vector<double> at_all(const Points& points) const override {
    std::vector<double> scores;
    Eigen::VectorXd slope(1);
    for (Eigen::Index i = 0; i < points.rows(); ++i) scores.push_back(at(points.row(i).transpose(), slope));
    return scores;
  }
  double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const override {
    slope[0] = -2 * (x[0] - place_);
    return -(x[0] - place_) * (x[0] - place_);
  }
  double place_;
};

TEST(Search, ClimbsToEveryValueOfALogarithmicInteger) {
  const Study study({read_space(R"([{"name":"n","type":"int","low":1,"high":8,"log":true}])")});
  for (int n = 1; n <= 8; ++n) {
    RandomStream random(random_key({3}));
    const auto found =
        maximise_acquisition(study, Peak(study.space().unit_at(0, n)), random, {.candidates = 1, .climbs = 1});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->point[0], n);
  }
}

}  // namespace
}  // namespace sinew::tune
