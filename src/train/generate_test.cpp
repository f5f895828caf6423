// Tests how the next token of a text is chosen.
#include "train/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/expected_error.h"

namespace sinew::train {
namespace {

std::vector<double> shares(const std::vector<float>& outputs, const Generation& options, int64_t tokens) {
  std::vector<double> counts(outputs.size());
  RandomStream random(random_key({options.seed}));
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i)
    counts[static_cast<size_t>(choose_token(outputs, tokens, options, random))] += 1.0 / kDraws;
  return counts;
}

TEST(Generate, TokensAreDrawnBySoftmax) {
  const std::vector<float> outputs = {1, 2, 0, 2};
  for (const double temperature : {0.5, 1.0, 3.0}) {
    const auto found = shares(outputs, {.temperature = temperature}, 4);
    double sum = 0;
    for (const float output : outputs) sum += std::exp(output / temperature);
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_NEAR(found[i], std::exp(outputs[i] / temperature) / sum, 0.01) << temperature << " " << i;
  }
}

TEST(Generate, TopKLeavesOutTheOthers) {
  const auto found = shares({1, 2, 0, 2}, {.top_k = 2}, 4);
  EXPECT_NEAR(found[1], 0.5, 0.01);
  EXPECT_NEAR(found[3], 0.5, 0.01);
  EXPECT_EQ(found[0] + found[2], 0);
  EXPECT_NEAR(shares({1, 2, 0, 2}, {.top_k = 1}, 4)[1], 1, 1e-9) << "the first of equal ones";
  EXPECT_EQ(shares({1, 2, 0, 2}, {.top_k = 100}, 3)[3], 0) << "the fourth may not be chosen";
}

TEST(Generate, TemperatureZeroIsGreedyAndSmallOnesAreStable) {
  RandomStream random(random_key({1}));
  EXPECT_EQ(choose_token(std::vector<float>{1, 3, 2}, 3, {.temperature = 0}, random), 1);
  EXPECT_EQ(choose_token(std::vector<float>{-3e38F, 3e38F, 0}, 3, {.temperature = 1e-6}, random), 1);
  for (const float bad : {NAN, INFINITY})
    EXPECT_ERROR(error_of([&] {
                   choose_token(std::vector<float>{1, bad}, 2, {}, random);
                 }),
                 "MODEL_OUTPUT_NOT_FINITE", "");
}

}  // namespace
}  // namespace sinew::train
