#include "base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"

namespace sinew {
namespace {

TEST(Crc32c, GivesTheCheckValueOfThePolynomial) {
  EXPECT_EQ(crc32c(std::as_bytes(std::span("123456789", 9))), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, CanBeContinued) {
  const std::string text(1000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  for (const size_t cut : {0, 1, 7, 8, 9, 500, 1000})
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), crc32c(bytes));
}

// The definition of CRC-32C: the reflected Castagnoli polynomial, one bit at a time.
uint32_t bit_by_bit(std::span<const std::byte> bytes) {
  uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
  }
  return ~crc;
}

TEST(Crc32c, EqualsTheDefinitionAtEveryLengthAndAlignment) {
  RandomStream random(random_key({32}));
  std::vector<std::byte> bytes(20'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  for (int i = 0; i < 300; ++i) {
    const size_t size = i < 40 ? static_cast<size_t>(i) * 512 + random.below(3) - (i > 0) : random.below(bytes.size());
    const auto part = std::span(bytes).subspan(random.below(bytes.size() - std::min(size, bytes.size() - 1)));
    const auto some = part.first(std::min(size, part.size()));
    ASSERT_EQ(crc32c(some), bit_by_bit(some)) << some.size();
    const size_t cut = random.below(some.size() + 1);
    ASSERT_EQ(crc32c(some.subspan(cut), crc32c(some.first(cut))), bit_by_bit(some)) << some.size() << " cut at " << cut;
  }
}

TEST(Digest, HexReadsBackTheSame) {
  const Digest digest = digest_of(std::string_view("sinew"));
  Digest back;
  ASSERT_TRUE(from_hex(to_hex(digest), back));
  EXPECT_EQ(back, digest);
  EXPECT_FALSE(from_hex("xyz", back));
  EXPECT_FALSE(from_hex(std::string(31, '0') + "g", back));
  EXPECT_EQ(to_hex(digest_of(std::string_view(""))), "99aa06d3014798d86001c324468d497f");  // XXH3-128 of no bytes
}

TEST(Digest, ADigestOfPartsDependsOnTheirOrder) {
  const Digest a = digest_of(std::string_view("a")), b = digest_of(std::string_view("b"));
  EXPECT_NE(digest_of(std::span<const Digest>(std::array{a, b})), digest_of(std::span<const Digest>(std::array{b, a})));
}

TEST(DigestStream, EqualsTheDigestOfAllBytesHoweverTheyAreCut) {
  std::vector<std::byte> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  DigestStream stream;
  EXPECT_EQ(stream.digest(), digest_of(std::string_view("")));
  for (const size_t piece : {1, 7, 64, 240, 241, 1024, 5000}) {
    stream.reset();
    for (size_t at = 0; at < bytes.size(); at += piece) {
      stream.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
      const size_t done = std::min(at + piece, bytes.size());
      if (at % 5 != 0) continue;
      EXPECT_EQ(stream.digest(), digest_of(std::span<const std::byte>(bytes).first(done)));
    }
    EXPECT_EQ(stream.digest(), digest_of(std::span<const std::byte>(bytes)));
  }
}

}  // namespace
}  // namespace sinew
