#include <gtest/gtest.h>

#include "spec/spec.h"

namespace sinew::spec {
namespace {

TEST(Patterns, AStarMatchesAnyCharacters) {
  EXPECT_TRUE(fits_pattern("encoder.*", "encoder.0.weight"));
  EXPECT_TRUE(fits_pattern("*", ""));
  EXPECT_TRUE(fits_pattern("*.bias", "a.b.bias"));
  EXPECT_TRUE(fits_pattern("a*b*c", "axxbyybzc"));
  EXPECT_TRUE(fits_pattern("head.weight", "head.weight"));
  EXPECT_FALSE(fits_pattern("head.weight", "head.weights"));
  EXPECT_FALSE(fits_pattern("encoder.*", "decoder.0.weight"));
  EXPECT_FALSE(fits_pattern("", "x"));
  EXPECT_FALSE(fits_pattern("a.c", "abc"));  // '.' matches only itself
  EXPECT_FALSE(fits_pattern("*.bias", "a.bias.x"));
}

TEST(Patterns, ManyStarsStayFast) {
  const std::string name(5000, 'a');
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "a*";
  EXPECT_FALSE(fits_pattern(pattern + "b", name));
}

TEST(Patterns, AScaleIsAPatternAndAFactor) {
  EXPECT_EQ(parse_scale("encoder.*=0.1")->pattern, "encoder.*");
  EXPECT_EQ(parse_scale("encoder.*=0.1")->factor, 0.1);
  EXPECT_EQ(parse_scale("a=b=2")->pattern, "a=b");
  EXPECT_EQ(parse_scale("x=0")->factor, 0);
  for (const char* bad : {"", "encoder", "=1", "x=", "x=-1", "x=nan", "x=1e9", "x=1 "})
    EXPECT_FALSE(parse_scale(bad)) << bad;
}

}  // namespace
}  // namespace sinew::spec
