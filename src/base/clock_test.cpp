#include "base/clock.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace sinew {
namespace {

TEST(UtcText, UtcOfCompactInvertsUtcCompact) {
  EXPECT_EQ(utc_compact(0), "19700101T000000Z");
  RandomStream random(random_key({7}));
  for (int i = 0; i < 2000; ++i) {
    const auto second = static_cast<double>(random.below(7'000'000'000));
    ASSERT_EQ(utc_of_compact(utc_compact(second) + "-fashion"), second) << utc_compact(second);
  }
}

TEST(UtcText, OtherTextsGiveZero) {
  for (const char* text : {"", "run", "20261121", "20261121T0315Z", "20261121T031502", "2026-11-21T03:15:02Z"})
    EXPECT_EQ(utc_of_compact(text), 0) << text;
}

}  // namespace
}  // namespace sinew
