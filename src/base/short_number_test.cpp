#include "base/short_number.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(ShortRange, HasTheDigitsThatItsWidthAllows) {
  EXPECT_EQ(short_range(0.92134, 0.9342), "0.921-0.935");
  EXPECT_EQ(short_range(0.2149, 0.2901), "0.21-0.30");
  EXPECT_EQ(short_range(1234.5, 1302.1), "1234-1303");
  EXPECT_EQ(short_range(-3.21, -1.14), "-4--1");
}

TEST(ShortRange, IsRoundedOutwardsButNeverPastItsOwnDigits) {
  EXPECT_EQ(short_range(0.9, 1), "0.90-1.00") << "an accuracy is not above 1";
  EXPECT_EQ(short_range(0, 0.05), "0.00-0.05");
  EXPECT_EQ(short_range(0.25, 0.5), "0.2-0.5");
  EXPECT_EQ(short_range(0.0004, 0.0171), "0.0004-0.0171") << "a loss that cannot become 0";
}

TEST(ShortRange, OfOneValueIsANumber) {
  EXPECT_EQ(short_range(0.5, 0.5), short_number(0.5));
  EXPECT_EQ(short_range(2e-7, 5e-7), "2.00e-07-5.00e-07");
}

}  // namespace
}  // namespace sinew
