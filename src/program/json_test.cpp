// JSON that may be hostile: bounds before anything is built, and errors with their place.
#include "program/json.h"

#include <cmath>

#include "program/refusal.h"

namespace sinew::program {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string refused(const std::string& text) {
  return refusal([&] { parse_json(text, "f: m"); });
}

TEST(Json, ReadsEveryKindInOrder) {
  const Document document = parse_json(R"({"b":[1,-2,1.5,"x",null,true,"NaN","-Infinity"],"a":{}})", "f: m");
  const Spot root(document);
  EXPECT_EQ(root.object()[0].name, "b");
  const Spot list = root.get("b");
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

TEST(Json, BoundsDepthBeforeItBuilds) {
  EXPECT_NO_THROW(parse_json(repeated("[", kDeepestJson) + repeated("]", kDeepestJson), "f: m"));
  EXPECT_THAT(refused(repeated("[", kDeepestJson + 1) + repeated("]", kDeepestJson + 1)), HasSubstr("nested deeper"));
  EXPECT_THAT(refused(repeated("[", 5'000'000)), HasSubstr("nested deeper than 200"));
  EXPECT_THAT(refused(repeated("{\"a\":", 1'000'000)), HasSubstr("nested deeper than 200"));
}

TEST(Json, BoundsTheNumberOfValues) {
  EXPECT_NO_THROW(parse_json("[0,0,0,0]", "f: m", 5));
  EXPECT_THAT(refusal([&] { parse_json("{\"a\":[0,0,0,0]}", "f: m", 3); }),
              StartsWith("f: m: a[3]: is one value more than the 3 read"));
}

TEST(Json, RefusesWithThePlace) {
  EXPECT_THAT(refused(R"({"a":[0,{"b":1,"c":2,"b":3}]})"), StartsWith("f: m: a[1]: has the name 'b' twice"));
  EXPECT_THAT(refused(R"({"a":1,"\u0061":1})"), StartsWith("f: m: has the name 'a' twice"));
  EXPECT_THAT(refused(R"({"a":[18446744073709551615]})"), StartsWith("f: m: a[0]: is an integer over 2^63"));
  EXPECT_THAT(refused("{\"a\":1}{}"), HasSubstr("f: m: not JSON at byte"));
  EXPECT_THAT(refused("{\"a\":NaN}"), HasSubstr("not JSON"));
  EXPECT_THAT(refused("1e999"), HasSubstr("not JSON"));
  EXPECT_THAT(refused("\"\xff\""), HasSubstr("not JSON"));
  EXPECT_THAT(refused(""), HasSubstr("not JSON"));
  EXPECT_THAT(refused(std::string("{}\0{}", 5)), HasSubstr("zero byte"));
}

TEST(Json, AskingForWhatIsNotThereNamesTheWay) {
  const Document document = parse_json(R"({"a":[{"b":"text","long name\n":{}}]})", "f: m");
  const Spot root(document);
  const Spot inner = root.get("a").of(root.get("a").array()[0]);
  EXPECT_THAT(refusal([&] { inner.get("b").integer(); }),
              StartsWith("f: m: a[0].b: should be an integer, but is text"));
  EXPECT_THAT(refusal([&] { inner.get("c"); }), StartsWith("f: m: a[0]: lacks 'c'"));
  EXPECT_THAT(refusal([&] { inner.only(); }), HasSubstr("should have one member, but has 2"));
  EXPECT_THAT(refusal([&] { inner.allow({"b"}); }), HasSubstr("has 'long name?', which the schema"));
  EXPECT_THAT(refusal([&] { inner.get("long name\n").array(); }),
              StartsWith("f: m: a[0].long name?: should be a list"));
  EXPECT_THAT(refusal([&] { inner.get("b").number(); }), HasSubstr("should be a number"));
  EXPECT_THAT(refusal([&] { root.text(); }), StartsWith("f: m: should be text, but is an object"));
  EXPECT_THAT(refusal([&] { root.boolean(); }), HasSubstr("should be true or false"));
}

}  // namespace
}  // namespace sinew::program
