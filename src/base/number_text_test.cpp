#include "base/number_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace sinew {
namespace {

TEST(NumberText, WritesTheShortestTextOfANumber) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(0.1F), "0.1") << "a float has fewer digits";
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(1e300), "1e+300");
  EXPECT_EQ(number_text(-0.0), "-0");
  EXPECT_EQ(number_text(std::nan("")), "nan");
}

TEST(NumberText, RoundsForPeople) {
  EXPECT_EQ(rounded_text(1.0 / 3), "0.333333");
  EXPECT_EQ(rounded_text(1.0 / 3, 3), "0.333");
  EXPECT_EQ(rounded_text(2), "2");
  EXPECT_EQ(rounded_text(1.5e-7), "1.5e-07");
}

TEST(NumberText, AppendsIntegers) {
  std::string text = "n=";
  append_integer(text, INT64_MIN);
  EXPECT_EQ(text, "n=-9223372036854775808");
}

TEST(NumberText, WholeNumbersStayInTheirRange) {
  EXPECT_EQ(whole_number("--workers", "1", 1, 8), 1);
  EXPECT_EQ(whole_number("--workers", "8", 1, 8), 8);
  for (const char* text : {"", "0", "9", "2.5", "2x", " 2", "99999999999999999999", "-1", "+1"})
    EXPECT_THROW(whole_number("--workers", text, 1, 8), UsageError) << text;
}

TEST(NumberText, NumbersAbove0AreFinite) {
  EXPECT_EQ(number_above_0("cost", "2.5"), 2.5);
  EXPECT_EQ(number_above_0("cost", "1e-3"), 1e-3);
  EXPECT_EQ(number_above_0("cost", "0.0", true), 0);
  for (const char* text : {"", "0", "-1", "inf", "nan", "1e999", "2,5"})
    EXPECT_THROW(number_above_0("cost", text), UsageError) << text;
}

TEST(NumberText, DurationsHaveUnits) {
  EXPECT_EQ(duration_seconds("--wait", "5"), 5);
  EXPECT_EQ(duration_seconds("--wait", "5s"), 5);
  EXPECT_EQ(duration_seconds("--wait", "300ms"), 0.3);
  EXPECT_EQ(duration_seconds("--wait", "1.5m"), 90);
  EXPECT_EQ(duration_seconds("--wait", "10min"), 600);
  EXPECT_EQ(duration_seconds("--wait", "2h"), 7200);
  EXPECT_EQ(duration_seconds("--wait", "1d"), 86400);
  EXPECT_EQ(duration_seconds("--wait", "0", true), 0);
  EXPECT_THROW(duration_seconds("--wait", "-1s", true), UsageError);
  EXPECT_THROW(duration_seconds("--wait", "0x", true), UsageError);
  for (const char* text : {"", "s", "0s", "-5s", "5 s", "5x", "401d", "nan", "inf"})
    EXPECT_THROW(duration_seconds("--wait", text), UsageError) << text;
}

}  // namespace
}  // namespace sinew
