#include "base/sha256.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace sinew {
namespace {

// The examples of FIPS 180-4. sha256sum gives the same digest of a million letters.
TEST(Sha256, GivesTheStandardsOwnExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PartsGiveTheDigestOfTheWhole) {
  const std::string text = "The same bytes, cut anywhere, have the same digest.";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.update(std::string_view(text).substr(0, cut));
    hash.update(std::string_view(text).substr(cut));
    EXPECT_EQ(hash.hex(), sha256_hex(text)) << cut;
  }
}

TEST(Sha256, HmacGivesTheStandardsOwnExamples) {  // RFC 4231, test cases 2 and 6
  EXPECT_EQ(hex_of(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex_of(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, IsSha256AcceptsOnlyDigests) {
  EXPECT_TRUE(is_sha256(sha256_hex("x")));
  EXPECT_FALSE(is_sha256(""));
  EXPECT_FALSE(is_sha256(std::string(64, 'A')));
  EXPECT_FALSE(is_sha256(std::string(63, 'a')));
  EXPECT_FALSE(is_sha256("../../" + std::string(58, 'a')));
}

}  // namespace
}  // namespace sinew
