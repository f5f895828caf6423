#include "base/wildcards.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace sinew {
namespace {

// The definition, spelled out.
bool plain(std::string_view text, std::string_view pattern, Wildcards wildcards) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == wildcards.any)
    return plain(text, pattern.substr(1), wildcards) || (!text.empty() && plain(text.substr(1), pattern, wildcards));
  if (text.empty() || (pattern[0] != text[0] && pattern[0] != wildcards.one)) return false;
  return plain(text.substr(1), pattern.substr(1), wildcards);
}

TEST(Wildcards, MatchAsDefined) {
  RandomStream random(random_key({45}));
  const auto word = [&](const char* letters, size_t most) {
    std::string text(random.below(most), ' ');
    for (char& c : text) c = letters[random.below(4)];
    return text;
  };
  int matched = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::string text = word("abab", 9), pattern = word("ab%_", 7);
    ASSERT_EQ(fits_wildcards(text, pattern, {'%', '_'}), plain(text, pattern, {'%', '_'})) << text << ' ' << pattern;
    ASSERT_EQ(fits_wildcards(text, pattern, {'%'}), plain(text, pattern, {'%'})) << text << ' ' << pattern;
    matched += fits_wildcards(text, pattern, {'%', '_'}) ? 1 : 0;
  }
  EXPECT_GT(matched, 1000);
}

TEST(Wildcards, OneIsACharacterAndNotAByte) {
  EXPECT_TRUE(fits_wildcards("gr\xc3\xbc\xc3\x9f", "gr__", {'%', '_'}));
  EXPECT_TRUE(fits_wildcards("\xf0\x9f\x99\x82!", "_!", {'%', '_'}));
  EXPECT_TRUE(fits_wildcards("cut\xc3", "cut_", {'%', '_'})) << "the last character is cut off";
}

TEST(Wildcards, AHostilePatternTakesNoLongTime) {
  const std::string text(5000, 'a');
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "%a";
  EXPECT_FALSE(fits_wildcards(text, pattern + "b", {'%', '_'}));
}

}  // namespace
}  // namespace sinew
