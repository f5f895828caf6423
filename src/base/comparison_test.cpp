#include "base/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"

namespace sinew {
namespace {

bool holds(const std::string& text, const std::vector<double>& values = {}) {
  return Comparison(text).holds(values);
}

TEST(Comparison, ReadsTheUsualNotation) {
  EXPECT_TRUE(holds("a < 2", {1}));
  EXPECT_FALSE(holds("a < 2", {2}));
  EXPECT_TRUE(holds("a<=2", {2}));
  EXPECT_TRUE(holds("2 + 3 * 4 == a", {14}));
  EXPECT_TRUE(holds("(2 + 3) * 4 == a", {20}));
  EXPECT_TRUE(holds("10 - 3 - 2 == a", {5}));
  EXPECT_TRUE(holds("24 / 3 / 2 == a", {4}));
  EXPECT_TRUE(holds("-a * -2 >= 6", {3}));
  EXPECT_TRUE(holds("--a == 3", {3}));
  EXPECT_TRUE(holds("model.dim % model.heads == 0", {64, 4}));
  EXPECT_FALSE(holds("model.dim % model.heads == 0", {64, 5}));
  EXPECT_TRUE(holds("0 < a <= b != 3", {1, 2}));
  EXPECT_FALSE(holds("0 < a <= b != 3", {1, 3}));
  EXPECT_TRUE(holds("\"learning rate\" <= 1e-3", {1e-4}));
  EXPECT_EQ(Comparison("b + a < a * b + \"c d\"").names(), (std::vector<std::string>{"b", "a", "c d"}));
}

TEST(Comparison, NumbersThatAgreeToTwelveDigitsAreEqual) {
  EXPECT_TRUE(holds("a + b == 0.3", {0.1, 0.2}));
  EXPECT_TRUE(holds("a + b <= 0.3", {0.1, 0.2}));
  EXPECT_FALSE(holds("a + b > 0.3", {0.1, 0.2}));
  EXPECT_FALSE(holds("a != b", {1, 1 + 1e-14}));
  EXPECT_TRUE(holds("a != b", {1, 1 + 1e-11}));
  EXPECT_TRUE(holds("a > 0", {1e-300}));
  EXPECT_TRUE(holds("a + b - 0.3 == 0", {0.1, 0.2}));
  EXPECT_TRUE(holds("a + b - 0.3 <= 0", {0.1, 0.2}));
  EXPECT_FALSE(holds("a + b - 0.3 > 0", {0.1, 0.2}));
  for (int tenths = 0; tenths <= 10; ++tenths)
    EXPECT_EQ(holds("a % 0.2 == 0", {tenths / 10.0}), tenths % 2 == 0) << tenths;
}

TEST(Comparison, NanMeetsNoComparison) {
  for (const char* text : {"1 / a <= 5", "1 / a >= 5", "1 % a == 0", "1 / a != 5", "a / a == 1"})
    EXPECT_FALSE(holds(text, {0})) << text;
}

TEST(Comparison, RefusesWrongTextsAndNamesTheCharacter) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "(character 1)"},
      {"a", "compares nothing"},
      {"1 < 2", "contains no name"},
      {"a <", "instead of the end of the text (character 4)"},
      {"a < b c", "cannot continue with 'c' (character 7)"},
      {"a = b", "cannot continue with '= b' (character 3)"},
      {"(a < b", "needs ')' here instead of '< b' (character 4)"},
      {"a < (b", "needs ')' here instead of the end of the text (character 7)"},
      {"a < b)", "cannot continue with ')' (character 6)"},
      {"a << b", "needs a number or a name here instead of '< b' (character 4)"},
      {"a < 1e999", "a number that cannot be read"},
      {"a < .", "a number that cannot be read"},
      {"a < \"b", "a quoted name that does not end"},
      {"a < \"\"", "a quoted name that does not end"},
      {"a + * b < 1", "instead of '* b < 1' (character 5)"},
      {"a < \x01", "(character 5)"},
      {std::string(60, '(') + "a" + std::string(60, ')') + " < 1", "too many brackets"},
      {std::string(2000, 'a') + " < 1", "longer than 1000"},
  };
  for (const auto& [text, words] : cases) {
    try {
      const Comparison made(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_EQ(error.code, ErrorCode("COMPARISON_BAD_SYNTAX"));
      EXPECT_FALSE(error.hint.empty());
    }
  }
}

// Random text that mostly consists of tokens of the language is either refused or evaluated, and never crashes.
TEST(Comparison, ReadsOrRefusesAnyText) {
  const std::string words[] = {"a", "b", "1", "2.5", "+",  "-", "*",  "/",  "%",
                               "(", ")", "<", "<=",  "==", " ", "\"", "x y"};
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string text;
    for (size_t length = 1 + random() % 12; length > 0; --length) text += words[random() % std::size(words)];
    try {
      const Comparison made(text);
      made.holds(std::vector<double>(made.names().size(), 1.5));
      EXPECT_EQ(Comparison(made.text()).names(), made.names());
      ++read;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace sinew
