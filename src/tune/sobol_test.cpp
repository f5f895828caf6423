#include "tune/sobol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace sinew::tune {
namespace {

constexpr size_t kWide = 2 * kSobolDimensions + 3;

std::vector<std::vector<double>> points(uint64_t seed, uint32_t count, uint32_t first = 0) {
  std::vector<std::vector<double>> all(count, std::vector<double>(kWide));
  for (uint32_t i = 0; i < count; ++i) sobol_point(random_key({seed}), first + i, all[i]);
  return all;
}

TEST(Sobol, EveryAlignedPowerOfTwoHasOnePointInEveryInterval) {
  for (const uint32_t first : {0u, 256u, 1024u}) {
    const auto all = points(7, 256, first);
    for (size_t d = 0; d < kWide; ++d) {
      std::set<int> intervals;
      for (const auto& point : all) intervals.insert(static_cast<int>(point[d] * 256));
      EXPECT_EQ(intervals.size(), 256u) << "dimension " << d << " from " << first;
    }
  }
}

// The first two dimensions are a (0, m, 2)-net: every elementary box of area 1/256 holds exactly one of 256 points. A
// wrong direction number, or a scrambling that is not nested, breaks this property.
TEST(Sobol, TheFirstTwoDimensionsAreANet) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto all = points(seed, 256);
    for (int wide = 0; wide <= 8; ++wide) {
      std::set<std::pair<int, int>> boxes;
      for (const auto& point : all) {
        boxes.emplace(static_cast<int>(std::ldexp(point[0], wide)), static_cast<int>(std::ldexp(point[1], 8 - wide)));
      }
      EXPECT_EQ(boxes.size(), 256u) << wide;
    }
  }
}

// Joe and Kuo chose the direction numbers for good pairs: no pair of the first ten dimensions leaves large boxes empty.
TEST(Sobol, PairsOfDimensionsCoverTheSquare) {
  const auto all = points(5, 1024);
  for (size_t a = 0; a < 10; ++a) {
    for (size_t b = a + 1; b < 10; ++b) {
      std::set<std::pair<int, int>> boxes;
      for (const auto& point : all) {
        boxes.emplace(static_cast<int>(point[a] * 8), static_cast<int>(point[b] * 8));
      }
      EXPECT_EQ(boxes.size(), 64u) << a << ", " << b;
    }
  }
}

TEST(Sobol, IntegratesBetterThanChance) {
  double sobol_error = 0, random_error = 0;
  const auto value = [](const std::vector<double>& x) {
    double product = 1;
    for (size_t d = 0; d < 8; ++d) product *= 1 + (x[d] - 0.5) / static_cast<double>(d + 1);
    return product;  // the integral over the unit cube is 1
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    double sobol = 0, random = 0;
    RandomStream stream(random_key({seed, 99}));
    for (const auto& point : points(seed, 512)) {
      sobol += value(point) / 512;
      std::vector<double> drawn(8);
      for (double& x : drawn) x = stream.uniform();
      random += value(drawn) / 512;
    }
    sobol_error += (sobol - 1) * (sobol - 1);
    random_error += (random - 1) * (random - 1);
  }
  EXPECT_LT(sobol_error * 20, random_error);
}

TEST(Sobol, APointDependsOnSeedAndIndexAlone) {
  EXPECT_EQ(points(3, 4, 12)[1], points(3, 16)[13]);
  EXPECT_NE(points(3, 1), points(4, 1));
}

}  // namespace
}  // namespace sinew::tune
