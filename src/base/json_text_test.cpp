#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sinew {
namespace {

// Tests dump_json for both types of JSON values (names in order of insertion, or sorted), on one line and indented,
// with any bytes in the strings.
TEST(JsonText, WritesWhatDumpWritesAndReplacesBytesThatAreNotUtf8) {
  const std::string text = R"({"b":1,"a":[0.5,"x"]})";
  EXPECT_EQ(dump_json(nlohmann::ordered_json::parse(text)), text);
  EXPECT_EQ(dump_json(nlohmann::json::parse(text)), R"({"a":[0.5,"x"],"b":1})");
  EXPECT_EQ(dump_json({{"b", 1}, {"a", 2}}), R"({"b":1,"a":2})");
  EXPECT_EQ(dump_json(nlohmann::json(7), 1), "7");
  EXPECT_EQ(dump_json(nlohmann::json::parse(text), 1), nlohmann::json::parse(text).dump(1));
  EXPECT_EQ(dump_json(nlohmann::ordered_json::parse(text), 2), nlohmann::ordered_json::parse(text).dump(2));
  EXPECT_EQ(dump_json(nlohmann::json("a\xff")), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(dump_json(nlohmann::ordered_json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace sinew
