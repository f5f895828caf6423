// Tests the constraints between parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

using testing::HasSubstr;

// The constraints of constrained_space() in testing.h, written in C++.
bool allowed_by_hand(const Space& space, const Point& point) {
  const double heads[] = {2, 4, 8};
  const auto dim = static_cast<int64_t>(point[2]), head = static_cast<int64_t>(heads[static_cast<size_t>(point[3])]);
  EXPECT_EQ(std::isnan(point[5]), point[4] == 0) << "no point of " << space.size();
  return point[0] + point[1] <= 0.3 && dim % head == 0 && (std::isnan(point[5]) || point[5] < point[2]);
}

TEST(Constraints, ChoicesCountAsNumbersAndInactiveParametersAreIgnored) {
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

TEST(Constraints, AFiniteSpaceCountsTheAllowedPoints) {
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

// In a finite space the samplers find every point that satisfies the constraints, and repeat none before that.
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

TEST(Constraints, TheBestPointIsFoundAtTheEdge) {
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

// The first parameter changes last, so the sampler must skip most of the grid in one step.
TEST(Constraints, AGridSkipsForbiddenPoints) {
  std::string list = "[";
  for (int i = 0; i < 12; ++i)
    list +=
        (i > 0 ? "," : "") + std::string(R"({"name":"p)") + std::to_string(i) + R"(","type":"int","low":0,"high":9})";
  Study study({read_space(list + "]", {Comparison("p0 >= 7"), Comparison("p1 + p2 == 11")})});
  const auto sampler = make_sampler("grid");
  for (int i = 0; i < 30; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    EXPECT_EQ(study.space().problem_of(study.trial(id).point), std::nullopt);
    EXPECT_EQ(study.different_points(), id + 1);
    study.tell(id, TrialState::complete, {1});
  }
}

TEST(Constraints, AGridWithAlmostNoAllowedPointDrawsAtRandom) {
  std::string list = "[";
  for (int i = 0; i < 16; ++i)
    list +=
        (i > 0 ? "," : "") + std::string(R"({"name":"p)") + std::to_string(i) + R"(","type":"float","low":0,"high":1})";
  const Space space = read_space(list + "]", {Comparison("0.11 < p15 < 0.12")});
  std::vector<Point> points;
  for (int restart = 0; restart < 2; ++restart) {
    Study study({space, {Direction::minimize}, 3, 20});
    auto sampler = make_sampler("grid");
    for (int i = 0; i < 4; ++i) {
      if (restart == 1) sampler = make_sampler("grid");
      const int64_t id = study.start(suggest_next(study, *sampler));
      EXPECT_TRUE(space.allows(study.trial(id).point));
      if (restart == 0) points.push_back(study.trial(id).point);
      EXPECT_TRUE(same_point(points[static_cast<size_t>(id)], study.trial(id).point));
      study.tell(id, TrialState::complete, {1});
    }
  }
}

TEST(Constraints, TheBestAllowedPointOfAnEarlierStudyIsTried) {
  StudyOptions options{read_space(R"([{"name":"x","type":"float","low":0,"high":1}])", {Comparison("x < 0.5")})};
  options.earlier = {{"then", {{0.9}, {0.7}, {0.25}, {0.1}}, {1, 2, 3, 4}}};
  const Study study(std::move(options));
  const Suggestion suggestion = suggest_next(study, *make_sampler("auto"));
  EXPECT_EQ(suggestion.by, "earlier");
  EXPECT_EQ(suggestion.point, Point{0.25});
}

TEST(Constraints, ABranchWithoutAllowedPointsIsRefused) {
  const auto branch = [](const std::string& type, const std::string& constraint) {
    return read_space(R"([{"name":"kind","type":"cat","choices":["a","b"]},
      {"name":"x",)" + type +
                          R"(,"if":{"kind":"a"}},{"name":"y",)" + type + R"(,"if":{"kind":"a"}},
      {"name":"z",)" + type +
                          R"(,"if":{"kind":"b"}}])",
                      {Comparison("z > 0"), Comparison(constraint)});
  };
  for (const char* type : {R"("type":"float","low":0,"high":1)", R"("type":"int","low":0,"high":3)"}) {
    EXPECT_NO_THROW(branch(type, "x <= y"));
    EXPECT_NO_THROW(branch(type, "x <= z - 5")) << "they are never there together";
    try {
      branch(type, "x > y + 9");
      ADD_FAILURE() << type;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode("TUNE_CONSTRAINTS_TOO_TIGHT"));
      EXPECT_THAT(error.what(), testing::EndsWith(" 'x > y + 9'"));
    }
  }
}

TEST(Constraints, ConstrainedNamesMustBeNumericParameters) {
  const auto refusal = [](const std::string& constraint) -> std::string {
    try {
      read_space(R"([{"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":0,"high":1},
                     {"name":"n","type":"int","low":1,"high":3},{"name":"act","type":"cat","choices":["relu","tanh"]}])",
                 {Comparison("y < 0.9"), Comparison(constraint)});
    } catch (const Error& error) {
      EXPECT_FALSE(error.hint.empty());
      return to_string(error);
    }
    return "taken";
  };
  EXPECT_EQ(refusal("x <= y"), "taken");
  EXPECT_THAT(refusal("x <= z"), AllOf(HasSubstr("'x <= z' names 'z'"), HasSubstr("[TUNE_BAD_CONSTRAINT]")));
  EXPECT_THAT(refusal("x <= act"), AllOf(HasSubstr("\"relu\""), HasSubstr("[TUNE_BAD_CONSTRAINT]")));
  EXPECT_THAT(refusal("x == y"), testing::EndsWith(" 'x == y' [TUNE_CONSTRAINTS_TOO_TIGHT]"));
  EXPECT_THAT(refusal("x > 2"), testing::EndsWith(" 'x > 2' [TUNE_CONSTRAINTS_TOO_TIGHT]"));
  const auto no_number = [] {
    read_space(R"([{"name":"c","type":"cat","choices":["nan",1]}])", {Comparison("c > 0")});
  };
  EXPECT_EQ(code_of(no_number), "TUNE_BAD_CONSTRAINT");
  try {
    read_space(R"([{"name":"n","type":"int","low":1,"high":3}])", {Comparison("n > 1"), Comparison("n < 2")});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(to_string(error), testing::EndsWith(" 'n > 1' and 'n < 2' [TUNE_CONSTRAINTS_TOO_TIGHT]"));
  }
}

}  // namespace
}  // namespace sinew::tune
