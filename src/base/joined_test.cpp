#include "base/joined.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sinew {
namespace {

TEST(Joined, PutsTheSeparatorBetweenAllParts) {
  EXPECT_EQ(joined(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(joined(std::vector<std::string>{"", "", "c"}, "|"), "||c") << "an empty part is a part";
}

TEST(Joined, TakesTheTextOfEachPart) {
  struct Named {
    std::string_view name;
  };
  EXPECT_EQ(joined(std::vector<Named>{{"x"}, {"y"}}, " or ", &Named::name), "x or y");
  EXPECT_EQ(joined_numbers(std::vector<int64_t>{3, 32, 32}, " x "), "3 x 32 x 32");
}

}  // namespace
}  // namespace sinew
