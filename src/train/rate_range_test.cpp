#include "train/rate_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/expected_error.h"
#include "base/random.h"

namespace sinew::train {
namespace {

// A sweep of 100 steps over a curve of the loss by log10 of the learning rate.
std::vector<RatePoint> sweep(const std::function<double(double)>& loss, double noise = 0, uint64_t seed = 0) {
  RandomStream random(random_key({seed}));
  std::vector<RatePoint> points;
  RateTest test;
  for (int64_t step = 0; step < 100; ++step) {
    const double lr = rate_at({}, step);
    points.push_back({lr, loss(std::log10(lr)) + noise * random.normal()});
    if (test.diverges_with(points.back().loss)) break;
  }
  return points;
}

// Falls from 2.3 to 0.5 around 10^at, and grows exponentially beyond 10^grows.
std::function<double(double)> fall_at(double at, double grows = 100) {
  return [=](double x) { return 0.5 + 1.8 / (1 + std::exp(4 * (x - at))) + std::exp(3 * (x - grows)); };
}

TEST(RateRange, TheRatesGrowExponentially) {
  EXPECT_DOUBLE_EQ(rate_at({}, 0), 1e-8);
  EXPECT_DOUBLE_EQ(rate_at({}, 99), 1);
  EXPECT_NEAR(rate_at({1e-4, 1e-2, 3}, 1), 1e-3, 1e-15);
}

TEST(RateRange, TheSuggestionIsWhereTheLossFallsFastest) {
  for (const double at : {-6.0, -4.0, -3.0, -2.0}) {
    const RateFinding finding = judge_rates(sweep(fall_at(at, at + 1.5)), false);
    EXPECT_NEAR(std::log10(finding.suggestion), at, 0.15) << at;
  }
}

TEST(RateRange, NoiseMovesTheSuggestionLittle) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const RateFinding finding = judge_rates(sweep(fall_at(-3, -1), 0.1, seed), true);
    EXPECT_NEAR(std::log10(finding.suggestion), -3, 0.5) << seed;
  }
}

TEST(RateRange, TheSuggestionHasTwoDigits) {
  const double rate = judge_rates(sweep(fall_at(-3)), false).suggestion;
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", rate);
  EXPECT_EQ(std::strtod(text, nullptr), rate);
}

TEST(RateRange, ALossThatFallsToTheEndHasASuggestion) {
  const RateFinding finding = judge_rates(sweep([](double x) { return 3 - 0.25 * (x + 8); }), false);
  EXPECT_GT(finding.suggestion, 0);
  EXPECT_FALSE(finding.diverged);
}

TEST(RateRange, TheTestEndsOnceTheLossHasGrown) {
  const auto points = sweep(fall_at(-5, -3));
  EXPECT_LT(points.size(), 80U);
  EXPECT_GT(points.size(), 50U);
  RateTest test;
  EXPECT_FALSE(test.diverges_with(1));
  EXPECT_TRUE(test.diverges_with(std::nan("")));
}

TEST(RateRange, TheExplosionAtTheEndDoesNotHideTheFall) {
  auto points = sweep(fall_at(-3));
  points.resize(80);
  points.push_back({0.1, 1e30});
  EXPECT_NEAR(std::log10(judge_rates(points, true).suggestion), -3, 0.15);
}

TEST(RateRange, ALossThatDoesNotFallIsAnError) {
  EXPECT_ERROR(error_of([] { judge_rates(sweep([](double) { return 2.3; }), false); }), "LR_NOT_FOUND",
               "does not fall at any learning rate");
  EXPECT_ERROR(error_of([] { judge_rates(sweep([](double x) { return 1 + std::exp(x + 4); }), true); }), "LR_NOT_FOUND",
               "does not fall");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto noisy = sweep([](double) { return 2.3; }, 0.3, seed);
    EXPECT_ERROR(error_of([&] { judge_rates(noisy, false); }), "LR_NOT_FOUND", "does not fall") << seed;
  }
}

TEST(RateRange, ADivergenceAtOnceIsAnError) {
  const std::vector<RatePoint> points = sweep([](double x) { return std::exp(20 * (x + 8)); });
  EXPECT_LT(points.size(), 10U);
  EXPECT_ERROR(error_of([&] { judge_rates(points, true); }), "LR_NOT_FOUND", "grows from the first steps on");
  EXPECT_ERROR(error_of([] { judge_rates({}, true); }), "LR_NOT_FOUND", "grows from the first steps on");
}

}  // namespace
}  // namespace sinew::train
