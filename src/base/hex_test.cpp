#include "base/hex.h"

#include <gtest/gtest.h>

#include <set>

namespace sinew {
namespace {

TEST(Hex, HasTwoDigitsAByte) {
  EXPECT_EQ(hex_of({}), "");
  const unsigned char bytes[] = {0, 1, 0x7f, 0x80, 0xaf, 0xff};
  EXPECT_EQ(hex_of(bytes), "00017f80afff");
}

TEST(Hex, ReadsOnlyItsOwnText) {
  unsigned char bytes[3] = {};
  EXPECT_TRUE(read_hex("00afff", bytes));
  EXPECT_EQ(hex_of(bytes), "00afff");
  for (const char* text : {"", "00aff", "00afff0", "00AFFF", "00afg0", "00af 0", "0x00af"}) {
    EXPECT_FALSE(read_hex(text, bytes)) << text;
  }
}

TEST(Hex, SaysWhichTextsAreDigits) {
  EXPECT_TRUE(is_hex("", 0));
  EXPECT_TRUE(is_hex("00afff9", 7));
  for (const char* text : {"00afff", "00afff90", "00aFff9", "00afg9 ", "0x00af9"})
    EXPECT_FALSE(is_hex(text, 7)) << text;
}

TEST(Hex, RandomHexDiffersEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = random_hex(16);
    EXPECT_TRUE(is_hex(text, 32)) << text;
    EXPECT_TRUE(seen.insert(text).second);
  }
  EXPECT_EQ(random_hex(0), "");
  EXPECT_EQ(random_hex(1000).size(), 2000U) << "more than the kernel gives at once";
}

}  // namespace
}  // namespace sinew
