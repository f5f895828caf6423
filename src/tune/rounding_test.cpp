#include "tune/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

std::string shortest(double value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr};
}

size_t digits_of(double value) {
  const std::string text = shortest(value);
  return static_cast<size_t>(
      std::ranges::count_if(text.substr(0, text.find('e')), [](char c) { return c >= '0' && c <= '9'; }));
}

TEST(Rounding, ReturnsTheNearestNumberWithThatManyDigits) {
  RandomStream random(random_key({2}));
  for (int i = 0; i < 2000; ++i) {
    const double value = (i % 2 == 0 ? 1 : -1) * std::exp(random.uniform(-50, 50));
    for (const int digits : {1, 4, 15}) {
      const double near = rounded(value, digits);
      EXPECT_LE(digits_of(near), static_cast<size_t>(digits));
      EXPECT_LE(std::abs(near - value), std::abs(value) * 0.5000001 * std::pow(10.0, 1 - digits));
      EXPECT_EQ(rounded(near, digits), near);
    }
    EXPECT_EQ(rounded(value, 17), value);
  }
  EXPECT_EQ(rounded(0, 4), 0);
}

TEST(Rounding, KeepsPointsInTheSpaceAndNearWhereTheyWere) {
  const Study study({mixed_space(), {Direction::minimize}, 1, 0});
  const Space& space = study.space();
  RandomStream random(random_key({3}));
  for (int i = 0; i < 500; ++i) {
    const Point point = random_point(space, random), near = rounded(study, point);
    EXPECT_EQ(space.problem_of(near), std::nullopt);
    for (size_t k = 0; k < space.size(); ++k) {
      ASSERT_EQ(std::isnan(near[k]), std::isnan(point[k]));
      if (std::isnan(near[k])) continue;
      EXPECT_NEAR(space.unit_at(k, near[k]), space.unit_at(k, point[k]), 6e-4);
      EXPECT_LE(digits_of(near[k]), 6U) << space[k].name;
      EXPECT_EQ(read_point(space, write_point(space, near))[k], near[k]);
    }
  }
}

TEST(Rounding, ANarrowRangeFarFromZeroKeepsItsDetail) {
  const Study study(
      {read_space(R"([{"name":"x","type":"float","low":1000,"high":1000.5}])"), {Direction::minimize}, 1, 0});
  std::set<double> different;
  for (int i = 0; i < 1000; ++i) different.insert(rounded(study, {1000 + 0.5 * i / 1000})[0]);
  EXPECT_GT(different.size(), 990U);
}

TEST(Rounding, ATriedPointGetsAFewMoreDigits) {
  Study study({read_space(R"([{"name":"x","type":"float","low":0,"high":1}])"), {Direction::minimize}, 1, 0});
  const double fine = 0.123456789012;
  std::set<double> tried;
  for (int i = 0; i < 4; ++i) {
    const Point point = rounded(study, {fine});
    EXPECT_TRUE(tried.insert(point[0]).second) << i;
    study.start({point, "", "", {}});
  }
  EXPECT_TRUE(study.seen(rounded(study, {fine}))) << "the rest would be the same trial again";
  for (const double x : tried) EXPECT_LE(digits_of(x), 8U);
}

TEST(Rounding, GridValuesAreShortDecimals) {
  const Space space = read_space(R"([{"name":"x","type":"float","low":0.1,"high":0.7,"step":0.1}])");
  for (const char* written : {"0.1", "0.2", "0.3", "0.6", "0.7"}) {
    const std::string text = std::string(R"({"x":)") + written + "}";
    EXPECT_EQ(write_point(space, read_point(space, text)), text);
  }
  // Floating-point arithmetic gives this number as 0.1 + 0.1 + 0.1.
  EXPECT_EQ(read_point(space, R"({"x":0.30000000000000004})")[0], 0.3);
}

}  // namespace
}  // namespace sinew::tune
