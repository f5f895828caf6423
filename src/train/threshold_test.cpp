#include "train/threshold.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace sinew::train {
namespace {

struct Judged {
  double tp = 0, fp = 0, fn = 0, tn = 0;
};

Judged judged(std::span<const float> scores, double threshold) {
  Judged counts;
  for (size_t i = 0; i < scores.size(); i += 2) {
    const bool truth = scores[i + 1] > 0.5F, guess = scores[i] >= threshold;
    (truth ? guess ? counts.tp : counts.fn : guess ? counts.fp : counts.tn) += 1;
  }
  return counts;
}

double value_of(const std::string& metric, const Judged& c) {
  if (metric == "f1") return c.tp == 0 ? 0 : 2 * c.tp / (2 * c.tp + c.fp + c.fn);
  if (metric == "accuracy") return (c.tp + c.tn) / (c.tp + c.fp + c.fn + c.tn);
  const double sensitivity = c.tp / (c.tp + c.fn), specificity = c.tn / (c.tn + c.fp);
  if (metric == "balanced_accuracy") return (sensitivity + specificity) / 2;
  if (metric == "youden") return sensitivity + specificity - 1;
  const double below = (c.tp + c.fp) * (c.tp + c.fn) * (c.tn + c.fp) * (c.tn + c.fn);
  return below == 0 ? 0 : (c.tp * c.tn - c.fp * c.fn) / std::sqrt(below);
}

// Every score is a threshold, and so is one above all of them. None is better than the chosen one.
TEST(Threshold, NoOtherIsBetter) {
  RandomStream draws(random_key({31}));
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<float> scores;
    const double shift = draws.uniform(-3, 3), rate = draws.uniform(0.1, 0.9);
    const auto count = static_cast<int>(5 + draws.below(80));
    for (int i = 0; i < count; ++i) {
      const bool positive = i == 0 || (i > 1 && draws.uniform() < rate);
      const double score = draws.normal() + (positive ? 1 : 0) + shift;
      scores.push_back(static_cast<float>(trial % 3 == 0 ? std::round(score) : score));
      scores.push_back(positive ? 1.0F : 0.0F);
    }
    for (const char* metric : {"f1", "accuracy", "balanced_accuracy", "youden", "mcc"}) {
      const Threshold chosen = choose_threshold(scores, metric);
      double best = value_of(metric, judged(scores, 1e9));
      for (size_t i = 0; i < scores.size(); i += 2) best = std::max(best, value_of(metric, judged(scores, scores[i])));
      EXPECT_NEAR(chosen.at_value, best, 1e-12) << metric;
      EXPECT_NEAR(value_of(metric, judged(scores, chosen.score)), best, 1e-12) << metric;
      EXPECT_NEAR(chosen.value, 1 / (1 + std::exp(-chosen.score)), 1e-12);
      EXPECT_GE(chosen.at_value, chosen.at_half);
    }
  }
}

TEST(Threshold, LiesBetweenTwoScores) {
  const std::vector<float> scores = {-3, 0, -2, 1, -1, 1, 2, 1};
  const Threshold chosen = choose_threshold(scores, "f1");
  EXPECT_EQ(chosen.score, -2.5);
  EXPECT_EQ(chosen.at_value, 1);
  EXPECT_EQ(chosen.at_half, 0.5);
}

TEST(Threshold, StaysAtOneHalfIfNothingIsGained) {
  const std::vector<float> scores = {-3, 0, -1, 0, 1, 1, 2, 1};
  EXPECT_EQ(choose_threshold(scores, "mcc").value, 0.5);
  EXPECT_EQ(choose_threshold({}, "f1").value, 0.5);
}

TEST(Threshold, ANotANumberIsWrong) {
  const std::vector<float> scores = {std::nanf(""), 1, std::nanf(""), 0, 3, 1, -3, 0};
  EXPECT_EQ(choose_threshold(scores, "accuracy").at_value, 0.5);
}

TEST(Threshold, AGivenOneIsMeasured) {
  const std::vector<float> scores = {-3, 0, -2, 1, -1, 1, 2, 1};
  const Threshold given = given_threshold(0.2, scores);
  EXPECT_NEAR(given.score, -1.3862943611198906, 1e-12);
  EXPECT_EQ(given.at_value, 0.8);
  data::DataInfo data;
  data.class_names = {"no", "yes"};
  EXPECT_EQ(to_string(given, data), "threshold 0.2 of 'yes': f1 0.8 on the validation data (0.5 at 0.5)");
  EXPECT_EQ(to_string(given_threshold(0.2, {}), data), "threshold 0.2 of 'yes'");
}

}  // namespace
}  // namespace sinew::train
