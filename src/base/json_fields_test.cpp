#include "base/json_fields.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

template <typename Json>
void expect_readers_to_trust_nothing() {
  const Json object = Json::parse(
      R"({"whole": 3, "large": 18446744073709551615, "negative": -1, "half": 0.5, "text": "abc", "yes": true,
          "nothing": null, "list": [1]})");
  EXPECT_EQ(whole_of(object, "whole"), 3);
  EXPECT_EQ(whole_of(object, "negative"), std::nullopt);
  EXPECT_EQ(whole_of(object, "negative", -1), -1);
  EXPECT_EQ(whole_of(object, "whole", 0, 2), std::nullopt);
  for (const char* key : {"large", "half", "text", "yes", "nothing", "list", "absent"})
    EXPECT_EQ(whole_of(object, key), std::nullopt) << key;
  EXPECT_EQ(number_of(object, "half"), 0.5);
  EXPECT_EQ(number_of(object, "whole"), 3.0);
  EXPECT_EQ(number_of(object, "half", 1, 2), std::nullopt);
  EXPECT_EQ(number_of(object, "text"), std::nullopt);
  EXPECT_EQ(truth_of(object, "yes"), true);
  EXPECT_EQ(truth_of(object, "whole"), std::nullopt);
  EXPECT_EQ(text_of(object, "text"), "abc");
  EXPECT_EQ(text_of(object, "text", 2), std::nullopt);
  EXPECT_EQ(text_of(object, "whole"), std::nullopt);
  EXPECT_EQ(text_or_empty(object, "text"), "abc");
  EXPECT_EQ(text_or_empty(object, "nothing"), "");
  for (const Json& other : {Json(), Json::array({1}), Json("text"), Json(3)}) {
    EXPECT_EQ(member_of(other, "text"), nullptr);
    EXPECT_EQ(text_or_empty(other, "text"), "");
  }
}

TEST(JsonFields, ReadersTrustNothing) {
  expect_readers_to_trust_nothing<nlohmann::json>();
  expect_readers_to_trust_nothing<nlohmann::ordered_json>();
}

}  // namespace
}  // namespace sinew
