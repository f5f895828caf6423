// Tests of axes: their ends, their ticks and the texts of these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "plot/plot.h"

namespace sinew::plot {
namespace {

std::vector<std::string> tick_texts(const Scale& scale) {
  std::vector<std::string> texts;
  for (const Tick& tick : scale.ticks) texts.push_back(tick.text);
  return texts;
}

TEST(Axis, TicksAreAtRoundNumbers) {
  using testing::ElementsAre;
  EXPECT_THAT(tick_texts(linear_scale({0, 1}, 6, true)), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(tick_texts(linear_scale({0.31, 0.92}, 6, true)), ElementsAre("0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(tick_texts(linear_scale({0, 2532}, 6, false)), ElementsAre("0", "1000", "2000"));
  EXPECT_THAT(tick_texts(linear_scale({0, 25'320}, 6, false)), ElementsAre("0", "10k", "20k"));
  EXPECT_THAT(tick_texts(linear_scale({0, 3e6}, 7, false)),
              ElementsAre("0", "0.5M", "1.0M", "1.5M", "2.0M", "2.5M", "3.0M"));
  EXPECT_THAT(tick_texts(linear_scale({0, 1e-4}, 6, true)),
              ElementsAre("0", "2e-05", "4e-05", "6e-05", "8e-05", "0.0001"));
  EXPECT_THAT(tick_texts(linear_scale({-3, 3}, 4, true)), ElementsAre("-4", "-2", "0", "2", "4"));
}

TEST(Axis, RoundEndsHoldTheData) {
  for (const Range data :
       {Range{0.31, 0.92}, Range{-7, 13}, Range{1e-9, 3e-9}, Range{-1e12, 5}, Range{99.99, 100.01}}) {
    const Scale scale = linear_scale(data, 6, true);
    const double little = 1e-6 * (data.high - data.low);
    EXPECT_LE(scale.range.low, data.low + little);
    EXPECT_GE(scale.range.high, data.high - little);
    EXPECT_EQ(scale.ticks.front().value, scale.range.low);
    EXPECT_EQ(scale.ticks.back().value, scale.range.high);
    EXPECT_GE(scale.ticks.size(), 3U);
    EXPECT_LE(scale.ticks.size(), 8U);
    const auto texts = tick_texts(scale);
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), texts.size()) << texts.front();
  }
}

TEST(Axis, OneValueHasRoomAroundIt) {
  for (const double value : {0.0, 5.0, -0.25, 1e300, -1e-300, 1e12}) {
    const Scale scale = linear_scale({value, value}, 6, true);
    EXPECT_LT(scale.range.low, scale.range.high) << value;
    EXPECT_GE(scale.place(value), -1e-6) << value;
    EXPECT_LE(scale.place(value), 1 + 1e-6) << value;
    EXPECT_GE(scale.ticks.size(), 2U) << value;
    EXPECT_LE(scale.ticks.size(), 12U) << value;
  }
}

TEST(Axis, StepsAreWholeNumbers) {
  for (const Tick& tick : linear_scale({0, 3}, 9, false, 1).ticks) EXPECT_EQ(tick.value, std::floor(tick.value));
}

TEST(Axis, ALogarithmicAxisHasPowersOfTen) {
  using testing::ElementsAre;
  const Scale scale = logarithmic_scale({0.0005, 200}, 6);
  EXPECT_THAT(tick_texts(scale), testing::IsSupersetOf({"0.01", "1", "100"}));
  EXPECT_NEAR(scale.place(0.0005), 0, 1e-12);
  EXPECT_NEAR(scale.place(200), 1, 1e-12);
  EXPECT_NEAR(scale.place(std::sqrt(0.0005 * 200)), 0.5, 1e-12);
  EXPECT_THAT(tick_texts(logarithmic_scale({1, 100}, 6)), ElementsAre("1", "2", "5", "10", "20", "50", "100"));
  EXPECT_LE(logarithmic_scale({1e-300, 1e300}, 6).ticks.size(), 8U);
}

TEST(Axis, PlacesAreShares) {
  const Scale scale = linear_scale({0, 10}, 6, true);
  EXPECT_EQ(scale.place(0), 0);
  EXPECT_EQ(scale.place(10), 1);
  EXPECT_EQ(scale.place(2.5), 0.25);
}

}  // namespace
}  // namespace sinew::plot
