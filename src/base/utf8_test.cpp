#include "base/utf8.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(Utf8, AcceptsEveryCodePointAndNothingElse) {
  for (uint32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    std::string text;
    append_utf8(point, text);
    const CodePoint read = decode_utf8(text, 0);
    ASSERT_EQ(read.value, point);
    ASSERT_EQ(static_cast<size_t>(read.size), text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) ASSERT_EQ(decode_utf8(text.substr(0, cut), 0).size, 0);
  }
  for (const char* bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xED\xBF\xBF",
                          "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82("}) {
    EXPECT_EQ(decode_utf8(bad, 0).size, 0) << bad;
    EXPECT_EQ(first_invalid_utf8("fine, then twelve more " + std::string(bad)), 23U);
  }
  EXPECT_EQ(first_invalid_utf8("grüße, 世界 and all the rest of it 😀"), std::string_view::npos);
}

}  // namespace
}  // namespace sinew
