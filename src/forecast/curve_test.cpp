#include "forecast/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace sinew::forecast {
namespace {

constexpr double kEnd = 100;

Prediction predict(double (*curve)(double), int reports, double noise, uint64_t seed) {
  RandomStream random(random_key({seed}));
  std::vector<double> steps, losses;
  for (int i = 1; i <= reports; ++i) {
    steps.push_back(i);
    losses.push_back(curve(i) + noise * random.normal());
  }
  return CurveModel(kEnd).predict(steps, losses, 0);
}

double exponential(double t) {
  return 0.2 + 0.8 * std::exp(-t / 17);
}
double slow_exponential(double t) {
  return 0.1 + 0.9 * std::exp(-t / 80);
}
double power(double t) {
  return 0.3 + 0.7 * std::pow(t, -0.7);
}
double stretched(double t) {
  return 0.25 + std::exp(-std::pow(t / 9, 0.6));
}

TEST(Curve, PredictsTheEndOfKnownFamilies) {
  for (const auto curve : {exponential, slow_exponential, power, stretched}) {
    const Prediction late = predict(curve, 40, 0, 1), early = predict(curve, 8, 0, 1);
    EXPECT_NEAR(late.mean(), curve(kEnd), 0.05) << curve(kEnd);
    EXPECT_NEAR(early.mean(), curve(kEnd), std::max(0.16, 3 * early.deviation())) << curve(kEnd);
  }
}

TEST(Curve, WeightsSumToOneAndFewPointsAreUncertain) {
  for (const int reports : {2, 3, 5, 20, 80}) {
    const Prediction prediction = predict(exponential, reports, 0.01, 4);
    double total = 0;
    for (const auto& component : prediction.components) total += component.weight;
    EXPECT_NEAR(total, 1, 1e-9);
  }
  EXPECT_GT(predict(exponential, 4, 0.01, 4).deviation(), 3 * predict(exponential, 60, 0.01, 4).deviation());
}

// With noise, the true end is within two standard deviations of the mean in at least 80 % of all predictions. This
// includes early predictions.
TEST(Curve, StandardDeviationsCoverTheTrueEnd) {
  int inside = 0, all = 0;
  for (const auto curve : {exponential, slow_exponential, power, stretched}) {
    for (uint64_t seed = 0; seed < 25; ++seed) {
      for (const int reports : {6, 12, 25, 50}) {
        const Prediction prediction = predict(curve, reports, 0.02, seed);
        inside += std::abs(prediction.mean() - curve(kEnd)) < 2 * prediction.deviation() + 0.02;
        ++all;
      }
    }
  }
  EXPECT_GT(inside, all * 8 / 10);
}

TEST(Curve, FlatAndRisingCurvesArePredicted) {
  const auto flat = predict([](double) { return 0.7; }, 10, 0, 1);
  EXPECT_NEAR(flat.mean(), 0.7, 0.01);
  const auto rising = predict([](double t) { return 0.5 + 0.01 * t; }, 20, 0, 1);
  EXPECT_GT(rising.mean(), 0.65);
}

TEST(Curve, ProbabilityGrowsFromNothingToOne) {
  const Prediction prediction = predict(power, 10, 0.01, 2);
  double before = 0;
  for (double value = -5; value < 5; value += 0.05) {
    const double here = prediction.probability_below(value);
    EXPECT_GE(here, before - 1e-12);
    before = here;
  }
  EXPECT_LT(prediction.probability_below(-5), 1e-3);
  EXPECT_NEAR(before, 1, 1e-3);
}

}  // namespace
}  // namespace sinew::forecast
