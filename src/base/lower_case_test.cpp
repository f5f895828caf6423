#include "base/lower_case.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(LowerCase, ChangesOnlyTheLettersOfAscii) {
  EXPECT_EQ(lower_case("GET /A-z_09@[`{"), "get /a-z_09@[`{");
  EXPECT_EQ(lower_case("\xc3\x84\xff"), "\xc3\x84\xff");
  EXPECT_EQ(lower_case(std::string_view("A\0B", 3)), std::string("a\0b", 3));
  EXPECT_EQ(lower_case(""), "");
}

}  // namespace
}  // namespace sinew
