// Tests how JSON from untrusted files is read: limits hold while the document is built, and errors name the place.
#include "program/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/expected_error.h"

namespace sinew::program {
namespace {

using testing::StartsWith;

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string refused_json(const std::string& text) {
  return error_of([&] { parse_json(text, "f: m"); });
}

TEST(Json, ReadsEveryKindInOrder) {
  const Document document = parse_json(R"({"b":[1,-2,1.5,"x",null,true,"NaN","-Infinity"],"a":{}})", "f: m");
  const JsonView root(document);
  EXPECT_EQ(root.object()[0].name, "b");
  const JsonView list = root.get("b");
  const auto at = [&](size_t i) { return list.of(list.array()[i]); };
  EXPECT_EQ(at(0).integer(), 1);
  EXPECT_EQ(at(1).integer(), -2);
  EXPECT_EQ(at(1).number(), -2.0);
  EXPECT_EQ(at(2).number(), 1.5);
  EXPECT_EQ(at(3).text(), "x");
  EXPECT_TRUE(at(4).is_null());
  EXPECT_TRUE(at(5).boolean());
  EXPECT_TRUE(std::isnan(at(6).number()));
  EXPECT_LT(at(7).number(), -1e308);
}

TEST(Json, LimitsTheDepthBeforeItBuilds) {
  EXPECT_NO_THROW(parse_json(repeated("[", kMaxJsonDepth) + repeated("]", kMaxJsonDepth), "f: m"));
  EXPECT_ERROR(refused_json(repeated("[", kMaxJsonDepth + 1) + repeated("]", kMaxJsonDepth + 1)), "PROGRAM_TOO_LARGE",
               "200");
  EXPECT_ERROR(refused_json(repeated("[", 5'000'000)), "PROGRAM_TOO_LARGE", "200");
  EXPECT_ERROR(refused_json(repeated("{\"a\":", 1'000'000)), "PROGRAM_TOO_LARGE", "200");
}

TEST(Json, LimitsTheNumberOfValues) {
  EXPECT_NO_THROW(parse_json("[0,0,0,0]", "f: m", 5));
  EXPECT_ERROR(error_of([&] { parse_json("{\"a\":[0,0,0,0]}", "f: m", 3); }), "PROGRAM_TOO_LARGE", "f: m: a[3]: ");
}

TEST(Json, RefusesBadJsonWithItsLocation) {
  EXPECT_THAT(refused_json(R"({"a":[0,{"b":1,"c":2,"b":3}]})"), StartsWith("f: m: a[1]: has the name 'b' twice"));
  EXPECT_THAT(refused_json(R"({"a":1,"\u0061":1})"), StartsWith("f: m: has the name 'a' twice"));
  EXPECT_ERROR(refused_json(R"({"a":[18446744073709551615]})"), "PROGRAM_BAD_JSON", "f: m: a[0]: ");
  EXPECT_ERROR(refused_json("{\"a\":1}{}"), "PROGRAM_BAD_JSON", "f: m: not JSON at byte");
  for (const char* text : {"{\"a\":NaN}", "1e999", "\"\xff\"", ""}) {
    EXPECT_ERROR(refused_json(text), "PROGRAM_BAD_JSON", "not JSON");
  }
  EXPECT_ERROR(refused_json(std::string("{}\0{}", 5)), "PROGRAM_BAD_JSON", "zero byte");
}

TEST(Json, ErrorsGiveThePathToTheValue) {
  const Document document = parse_json(R"({"a":[{"b":"text","long name\n":{}}]})", "f: m");
  const JsonView root(document);
  const JsonView inner = root.get("a").of(root.get("a").array()[0]);
  EXPECT_THAT(error_of([&] { inner.get("b").integer(); }),
              StartsWith("f: m: a[0].b: should be an integer, but is text"));
  EXPECT_THAT(error_of([&] { inner.get("c"); }), StartsWith("f: m: a[0]: lacks 'c'"));
  EXPECT_ERROR(error_of([&] { inner.single_member(); }), "PROGRAM_BAD_SCHEMA", "has 2");
  EXPECT_ERROR(error_of([&] { inner.allow({"b"}); }), "PROGRAM_BAD_SCHEMA", "has 'long name?'");
  EXPECT_THAT(error_of([&] { inner.get("long name\n").array(); }),
              StartsWith("f: m: a[0].long name?: should be a list"));
  EXPECT_ERROR(error_of([&] { inner.get("b").number(); }), "PROGRAM_BAD_SCHEMA", "should be a number");
  EXPECT_THAT(error_of([&] { root.text(); }), StartsWith("f: m: should be text, but is an object"));
  EXPECT_ERROR(error_of([&] { root.boolean(); }), "PROGRAM_BAD_SCHEMA", "should be true or false");
}

}  // namespace
}  // namespace sinew::program
