#include <gtest/gtest.h>

#include "spec/spec.h"

namespace sinew::spec {
namespace {

using Values = std::map<std::string, std::string>;

TEST(FlatValues, AreThoseOfTheFile) {
  const auto values = flat_values(
      "name: digits  # a comment\nmodel:\n  type: mlp\n  hidden: [64, [1, {a: b}], ~]\n  none: null\n  empty: {}\n"
      "tag: \"a: b\"\nlist: []\n");
  ASSERT_TRUE(values) << values.error();
  EXPECT_EQ(*values, (Values{{"name", "digits"},
                             {"model.type", "mlp"},
                             {"model.hidden", "[64, [1, {...}], ]"},
                             {"model.none", ""},
                             {"model.empty", "{}"},
                             {"tag", "a: b"},
                             {"list", "[]"}}));
}

TEST(FlatValues, AreThoseThatAJobFileWrites) {
  const std::string text = to_yaml(read_job("name: a\nmodel: {type: mlp}\ndata: {format: csv}\n", "job.yaml").job);
  const auto values = flat_values(text);
  ASSERT_TRUE(values) << values.error();
  EXPECT_EQ(values->at("name"), "a");
  EXPECT_GT(values->size(), 20U);
}

TEST(FlatValues, OfABrokenFileGiveThePosition) {
  for (const char* text : {"a: [1\nb: 2\n", "a: 1\n b: 2\n", "- a\n", "", "a: *b\n", "\x01: 1\n"})
    EXPECT_FALSE(flat_values(text)) << text;
  EXPECT_TRUE(flat_values("a: 1\n b: 2\n").error().starts_with("2:")) << flat_values("a: 1\n b: 2\n").error();
}

// Each text is small, and its values number billions once its aliases are expanded.
TEST(FlatValues, AliasesThatMultiplyEndAtALimit) {
  std::string maps = "a0: &a0 {k: v}\n", same_key = "b0: &b0 {k: v}\n", lists = "c0: &c0 [x]\n";
  for (int i = 1; i <= 15; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    maps += "a" + now + ": &a" + now + " {";
    same_key += "b" + now + ": &b" + now + " {";
    lists += "c" + now + ": &c" + now + " [";
    for (int k = 0; k < 10; ++k) {
      const std::string comma = k == 0 ? "" : ", ";
      maps += comma + "k" + std::to_string(k) + ": *a" + before;
      same_key += comma + "? [x] : *b" + before;  // all keys have the same name once they are flattened
      lists += comma + "*c" + before;
    }
    maps += "}\n";
    same_key += "}\n";
    lists += "]\n";
  }
  for (const std::string& text : {maps, same_key, lists}) {
    ASSERT_LT(text.size(), 10'000U);
    EXPECT_FALSE(flat_values(text));
  }
}

TEST(FlatValues, DeepAndLongFilesEndAtALimit) {
  std::string deep = "a: ", keys, many;
  for (int i = 0; i < 100'000; ++i) deep += "[";
  for (int i = 0; i < 20; ++i) keys += std::string(static_cast<size_t>(i), ' ') + "k:\n";
  for (int i = 0; i < 24'000; ++i) many += "k" + std::to_string(i) + ": 1\n";
  for (const std::string& text : {deep, keys, many, std::string(2 << 20, 'x')}) EXPECT_FALSE(flat_values(text));
}

}  // namespace
}  // namespace sinew::spec
