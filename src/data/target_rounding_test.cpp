// Tests that targets are refused if float32 would lose their differences, and that all other targets are accepted.
#include "data/target_rounding.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace sinew::data {
namespace {

std::string code_of_targets(const std::function<double(int)>& target) {
  TargetRounding rounding;
  for (int i = 0; i < 200; ++i) rounding.add(target(i));
  try {
    rounding.check("t.csv");
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("t.csv"), std::string::npos) << error.what();
    EXPECT_NE(error.hint.find("offset"), std::string::npos) << error.hint;
    return std::string(error.code.text());
  }
  return "";
}

TEST(TargetRounding, RefusesTargetsWhoseDifferencesWouldBeLost) {
  EXPECT_EQ(code_of_targets([](int i) { return 1700000000.0 + 30.0 * (i % 10); }), "DATA_TARGET_ROUNDED");
  EXPECT_EQ(code_of_targets([](int i) { return 1 + 1e-9 * i; }), "DATA_TARGET_ROUNDED");
  EXPECT_EQ(code_of_targets([](int i) { return -20000000.5 + 0.5 * (i % 3); }), "DATA_TARGET_ROUNDED");
}

TEST(TargetRounding, AcceptsOrdinaryTargets) {
  EXPECT_EQ(code_of_targets([](int i) { return 0.1 * i; }), "");
  EXPECT_EQ(code_of_targets([](int i) { return 250000.37 + 1000 * i; }), "");
  EXPECT_EQ(code_of_targets([](int i) { return 2000 + i % 20 + 0.1; }), "");
  EXPECT_EQ(code_of_targets([](int i) { return 16000000.0 + i % 3; }), "") << "float32 holds them exactly";
  EXPECT_EQ(code_of_targets([](int i) { return 1700000000.0 + 86400.0 * 1000 * i; }), "");
  EXPECT_EQ(code_of_targets([](int) { return 1700000001.0; }), "") << "a constant";
  EXPECT_EQ(code_of_targets([](int i) { return i % 2 == 0 ? 0.3 : 0.1 + 0.2; }), "") << "a constant, but for rounding";
  TargetRounding().check("no targets");
}

}  // namespace
}  // namespace sinew::data
