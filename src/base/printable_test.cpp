#include "base/printable.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(Printable, ReplacesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\nc\td\x7f"), "a?[2Jb??c?d?");
  EXPECT_EQ(printable("a\nb\tc\r\x1b", true), "a\nb\tc??");
  EXPECT_EQ(printable("µé日本𝄞"), "µé日本𝄞");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "x"),
            "?x");
  EXPECT_EQ(printable(std::string_view("\0\xff\xe2\x80", 4)), "????");
}

TEST(Printable, CutsAStartBetweenCharacters) {
  EXPECT_EQ(printable_start("short"), "short");
  EXPECT_EQ(printable_start("12345\x1b", 6), "12345?");
  EXPECT_EQ(printable_start("123456", 5), "12345...");
  EXPECT_EQ(printable_start("日本語", 8), "日本...");
  EXPECT_EQ(printable_start("日本語", 2), "...");
}

// Tries every pair of bytes.
TEST(Printable, LeavesNoControlCharacter) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string clean = printable(std::string{static_cast<char>(first), static_cast<char>(second)});
      EXPECT_EQ(printable(clean), clean);
      for (const char letter : clean) EXPECT_FALSE(static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F);
    }
  }
}

TEST(Printable, AShellReadsQuotedTextAsOneWord) {
  EXPECT_EQ(shell_quoted("data/a-1.csv"), "data/a-1.csv");
  EXPECT_EQ(shell_quoted("optimizer.lr=1e-4"), "optimizer.lr=1e-4");
  EXPECT_EQ(shell_quoted("=x"), "'=x'");
  EXPECT_EQ(shell_quoted("model.hidden=[8]"), "'model.hidden=[8]'");
  EXPECT_EQ(shell_quoted("sale price"), "'sale price'");
  EXPECT_EQ(shell_quoted("it's $1"), "'it'\\''s $1'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace sinew
