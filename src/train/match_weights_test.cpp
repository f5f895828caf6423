// Tests which tensor of a file is matched with which tensor of the model, and the messages about mismatches.
#include "train/match_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace sinew::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

WantedWeight want(const std::string& name, Shape shape, DType dtype = DType::f32) {
  WantedWeight weight;
  weight.name = name;
  weight.shape = std::move(shape);
  weight.dtype = dtype;
  return weight;
}
WeightShape have(const std::string& name, Shape shape, DType dtype = DType::f32) {
  return {name, dtype, std::move(shape)};
}

const std::vector<WantedWeight> kModel = {want("body.0.weight", {8, 4}), want("body.0.bias", {8}),
                                          want("head.weight", {3, 8}), want("head.bias", {3})};

spec::WeightSource mapped(std::vector<std::string> map, bool strict = true) {
  return {"x.safetensors", std::move(map), strict};
}

std::string pairs_of(const MatchedWeights& matched, const std::vector<WantedWeight>& wanted,
                     const std::vector<WeightShape>& given) {
  std::string text;
  for (const WeightFit& fit : matched.fits) text += given[fit.given].name + ">" + wanted[fit.wanted].name + " ";
  return text;
}

TEST(Renamed, CopiesTheTextsThatTheStarsMatch) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"encoder.*=backbone.*", "encoder.0.weight", "backbone.0.weight"},
      {"*=bert.*", "pooler.bias", "bert.pooler.bias"},
      {"bert.*=*", "bert.pooler.bias", "pooler.bias"},
      {"h.*.attn.*=blocks.*.attention.*", "h.11.attn.c.weight", "blocks.11.attention.c.weight"},
      {"a=b", "a", "b"},
      {"old.*=", "old.x", ""},
      {"*.gamma=*.weight", "norm.gamma", "norm.weight"},
      {"*.*=*", "a.b.c", "a"},  // an earlier star matches as little as possible
      {"x*x=*", "xx", ""},
  };
  for (const auto& [rule, name, made] : cases) EXPECT_EQ(renamed(rule, name), made) << rule << " of " << name;
  for (const auto& [rule, name] :
       {std::pair("a.*=b.*", "ab.c"), {"a=b", "aa"}, {"*.weight=*", "a.bias"}, {"x*x=*", "x"}})
    EXPECT_EQ(renamed(rule, name), std::nullopt) << rule << " of " << name;
}

// A rule matches exactly the names that the pattern on its left matches.
TEST(Renamed, MatchesTheSameNamesAsThePattern) {
  RandomStream random(random_key({5}));
  const auto word = [&](const char* letters, uint64_t kinds, uint64_t most) {
    std::string text;
    for (uint64_t n = random.below(most); n > 0; --n) text += letters[random.below(kinds)];
    return text;
  };
  int fitted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string pattern = "a" + word("ab*", 3, 7), name = "a" + word("ab", 2, 9);
    const bool fits = spec::fits_pattern(pattern, name);
    fitted += fits ? 1 : 0;
    ASSERT_EQ(renamed(pattern + "=x", name).has_value(), fits) << pattern << " " << name;
  }
  EXPECT_GT(fitted, 500);
}

TEST(MatchWeights, MatchesEqualNamesInAnyOrder) {
  const std::vector<WeightShape> given = {have("head.bias", {3}), have("body.0.weight", {8, 4}),
                                          have("body.0.bias", {8}), have("head.weight", {3, 8})};
  const MatchedWeights matched = match_weights(kModel, given, mapped({}));
  EXPECT_THAT(matched.problems, IsEmpty());
  EXPECT_EQ(pairs_of(matched, kModel, given),
            "head.bias>head.bias body.0.weight>body.0.weight body.0.bias>body.0.bias head.weight>head.weight ");
}

TEST(MatchWeights, ListsEveryMismatchWithBothShapes) {
  const std::vector<WeightShape> given = {have("body.0.weight", {8, 5}), have("body.0.bias", {8}, DType::i64),
                                          have("pooler.bias", {8}), have("head.bias", {3})};
  const MatchedWeights matched = match_weights(kModel, given, mapped({}));
  EXPECT_THAT(matched.problems, ElementsAre("wrong shape: body.0.weight is f32 [8, 5], the model has f32 [8, 4]",
                                            "wrong shape: body.0.bias is i64 [8], the model has f32 [8]",
                                            "missing: head.weight f32 [3, 8]", "unexpected: pooler.bias f32 [8]"));
  EXPECT_FALSE(matched.hint.empty());
}

TEST(MatchWeights, ConvertsFloatingPointTypes) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f64}) {
    const std::vector<WantedWeight> wanted = {want("a", {2})};
    EXPECT_THAT(match_weights(wanted, {have("a", {2}, dtype)}, mapped({})).problems, IsEmpty());
  }
}

TEST(MatchWeights, TheLastMatchingRuleApplies) {
  const std::vector<WeightShape> given = {have("net.0.weight", {8, 4}), have("net.0.bias", {8}),
                                          have("net.fc.weight", {3, 8}), have("net.fc.bias", {3}),
                                          have("net.extra", {7})};
  const MatchedWeights matched =
      match_weights(kModel, given, mapped({"net.*=body.*", "net.fc.*=head.*", "net.extra="}));
  EXPECT_THAT(matched.problems, IsEmpty());
  EXPECT_EQ(matched.fits.size(), 4U);
}

TEST(MatchWeights, RefusesInvalidRules) {
  const std::vector<WeightShape> given = {have("a", {2})};
  const std::vector<WantedWeight> wanted = {want("a", {2})};
  EXPECT_THAT(match_weights(wanted, given, mapped({"b.*=c.*"})).problems,
              Contains(HasSubstr("'b.*=c.*' matches none")));
  EXPECT_THAT(match_weights(wanted, given, mapped({"a=*"})).problems, Contains(HasSubstr("more * on the right")));
}

TEST(MatchWeights, TwoTensorsForOneNameAreAProblem) {
  const MatchedWeights matched =
      match_weights({want("w", {2})}, {have("a.w", {2}), have("b.w", {2})}, mapped({"a.*=*", "b.*=*"}));
  EXPECT_THAT(matched.problems, ElementsAre("twice: w, from a.w and from b.w"));
}

TEST(MatchWeights, ProposesARuleThatFixesTheMismatch) {
  std::vector<WeightShape> given;
  for (const WantedWeight& weight : kModel) given.push_back(have("model." + weight.name, weight.shape));
  EXPECT_EQ(match_weights(kModel, given, mapped({})).hint, "model.init_from.map: ['model.*=*']");
  EXPECT_THAT(match_weights(kModel, given, mapped({"model.*=*"})).problems, IsEmpty());

  const std::vector<WeightShape> other = {have("enc.0.weight", {8, 4}), have("enc.0.bias", {8}),
                                          have("head.weight", {3, 8}), have("head.bias", {3})};
  EXPECT_EQ(match_weights(kModel, other, mapped({})).hint, "model.init_from.map: ['enc.*=body.*']");

  std::vector<WeightShape> slip = {have("body.0.weight", {8, 4}), have("body.0.bias", {8}), have("head.weight", {3, 8}),
                                   have("head.bais", {3})};
  EXPECT_THAT(match_weights(kModel, slip, mapped({})).hint, HasSubstr("did you mean head.bias by head.bais"));
}

TEST(MatchWeights, NotStrictTakesTheTensorsThatMatch) {
  const std::vector<WeightShape> given = {have("body.0.weight", {8, 4}), have("other", {1})};
  const MatchedWeights matched = match_weights(kModel, given, mapped({}, false));
  EXPECT_THAT(matched.problems, IsEmpty());
  EXPECT_THAT(matched.missing, ElementsAre("body.0.bias", "head.weight", "head.bias"));
  EXPECT_THAT(matched.unexpected, ElementsAre("other"));
  // Another shape is still an error, as is a file without any matching tensor.
  EXPECT_FALSE(match_weights(kModel, {have("head.bias", {4})}, mapped({}, false)).problems.empty());
  EXPECT_FALSE(match_weights(kModel, {have("other", {4})}, mapped({}, false)).problems.empty());
}

TEST(MatchWeights, ReinitialisedParametersAreNeitherTakenNorMissing) {
  std::vector<WantedWeight> wanted = kModel;
  wanted[2].reinitialised = wanted[3].reinitialised = true;
  const std::vector<WeightShape> body = {have("body.0.weight", {8, 4}), have("body.0.bias", {8})};
  std::vector<WeightShape> with_old_head = body;
  with_old_head.push_back(have("head.weight", {1000, 8}));
  for (const auto& given : {body, with_old_head}) {
    const MatchedWeights matched = match_weights(wanted, given, mapped({}));
    EXPECT_THAT(matched.problems, IsEmpty());
    EXPECT_EQ(pairs_of(matched, wanted, given), "body.0.weight>body.0.weight body.0.bias>body.0.bias ");
  }
}

TEST(MatchWeights, BuffersMayBeMissing) {
  std::vector<WantedWeight> wanted = {want("w", {2}), want("running_mean", {2})};
  wanted[1].required = false;
  EXPECT_THAT(match_weights(wanted, {have("w", {2})}, mapped({})).problems, IsEmpty());
}

}  // namespace
}  // namespace sinew::train
