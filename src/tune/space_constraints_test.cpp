// What must hold between parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

using testing::HasSubstr;

// By hand, of the space that testing.h has.
bool allowed_by_hand(const Space& space, const Point& point) {
  const double heads[] = {2, 4, 8};
  const auto dim = static_cast<int64_t>(point[2]), head = static_cast<int64_t>(heads[static_cast<size_t>(point[3])]);
  EXPECT_EQ(std::isnan(point[5]), point[4] == 0) << "no point of " << space.size();
  return point[0] + point[1] <= 0.3 && dim % head == 0 && (std::isnan(point[5]) || point[5] < point[2]);
}

TEST(Constraints, ChoicesCountByTheirNumberAndInactiveParametersNotAtAll) {
  const Space space = constrained_space();
  RandomStream random(random_key({1}));
  int allowed = 0;
  for (int i = 0; i < 20000; ++i) {
    const Point point = random_point(space, random);
    ASSERT_EQ(space.allows(point), allowed_by_hand(space, point));
    EXPECT_EQ(space.allows(point), !space.problem_of(point).has_value());
    allowed += space.allows(point);
  }
  EXPECT_GT(allowed, 200);
  EXPECT_TRUE(space.allows(space.allowed_point()));
  EXPECT_TRUE(mixed_space().allowed_point().empty());
}

TEST(Constraints, AFiniteSpaceCountsWhatTheyAllow) {
  const std::string list =
      R"([{"name":"x","type":"int","low":1,"high":12},{"name":"y","type":"ordinal","choices":[1,2,3,4]}])";
  const Space space = read_space(list, {Comparison("x % y == 0"), Comparison("x > 2 * y")});
  int64_t count = 0;
  for (int x = 1; x <= 12; ++x) {
    for (int y = 1; y <= 4; ++y) count += x % y == 0 && x > 2 * y;
  }
  EXPECT_EQ(space.count(), count);
  EXPECT_EQ(read_space(list).count(), 48);
}

// The last points of a finite space are found however few are allowed, and none twice before that.
TEST(Constraints, EveryAllowedPointIsTriedOnce) {
  for (const char* name : {"auto", "random", "grid", "sobol", "tpe", "cmaes", "nearby", "gp", "trust_region", "bohb"}) {
    Study study(
        {read_space(R"([{"name":"x","type":"int","low":1,"high":30},{"name":"y","type":"int","low":1,"high":30}])",
                    {Comparison("x * y == 36")})});
    const auto sampler = make_sampler(name);
    ASSERT_EQ(study.space().count(), 7);
    for (int64_t i = 0; i < 7; ++i) {
      Suggestion suggestion = suggest_next(study, *sampler);
      EXPECT_EQ(suggestion.point[0] * suggestion.point[1], 36) << name;
      EXPECT_FALSE(study.seen(suggestion.point)) << name;
      study.tell(study.start(std::move(suggestion)), TrialState::complete, {1});
    }
    EXPECT_EQ(suggest_next(study, *sampler).point[0] * suggest_next(study, *sampler).point[1], 36) << name;
  }
}

TEST(Constraints, TheBestPointIsFoundAtTheirEdge) {
  for (const char* name : {"auto", "gp", "tpe"}) {
    Study study(
        {read_space(R"([{"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":0,"high":1}])",
                    {Comparison("x + y <= 0.5")})});
    const auto sampler = make_sampler(name);
    double best = 0;
    for (int i = 0; i < 60; ++i) {
      Suggestion suggestion = suggest_next(study, *sampler);
      const double value = -suggestion.point[0] - 2 * suggestion.point[1];
      best = std::min(best, value);
      study.tell(study.start(std::move(suggestion)), TrialState::complete, {value});
    }
    EXPECT_LT(best, std::string(name) == "tpe" ? -0.9 : -0.99) << name;
  }
}

TEST(Constraints, WhatTheyNameMustBeANumberOfTheSpace) {
  const auto refusal = [](const std::string& constraint) -> std::string {
    try {
      read_space(R"([{"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":0,"high":1},
                     {"name":"n","type":"int","low":1,"high":3},{"name":"act","type":"cat","choices":["relu","tanh"]}])",
                 {Comparison(constraint)});
    } catch (const Error& error) {
      EXPECT_FALSE(error.hint.empty());
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refusal("x <= y"), "taken");
  EXPECT_THAT(refusal("x <= z"), HasSubstr("'x <= z' names 'z', which is no parameter"));
  EXPECT_THAT(refusal("x <= act"), HasSubstr("choice \"relu\" is no number"));
  EXPECT_THAT(refusal("x == y"), HasSubstr("none of 200,000 points drawn at random meets 'x == y'"));
  EXPECT_THAT(refusal("x > 2"), HasSubstr("meets 'x > 2'"));
  try {
    read_space(R"([{"name":"n","type":"int","low":1,"high":3}])", {Comparison("n > 1"), Comparison("n > 3")});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no point of the search meets 'n > 1', 'n > 3'");
  }
}

}  // namespace
}  // namespace sinew::tune
