// Tests what holds for every sampler.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/error.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

class EverySampler : public testing::TestWithParam<std::string> {};

// Runs a study with several trials in flight that end in a random order. Some trials fail, and some have NaN as their
// value.
Study run(const std::string& name, Space space, uint64_t seed, int trials, size_t in_flight, bool fresh_sampler) {
  Study study({std::move(space), {Direction::minimize}, seed, trials});
  auto sampler = make_sampler(name);
  RandomStream random(random_key({seed, 17}));
  while (static_cast<int>(study.observed().size()) < trials) {
    if (study.open().size() < in_flight && study.next_id() < trials) {
      if (fresh_sampler) sampler = make_sampler(name);
      study.start(suggest_next(study, *sampler));
      continue;
    }
    const int64_t id = study.open()[random.below(study.open().size())];
    const double luck = random.uniform();
    if (luck < 0.05) {
      study.tell(id, TrialState::failed);
    } else {
      study.tell(id, TrialState::complete, {luck < 0.1 ? std::nan("") : bowl(study.space(), study.trial(id).point)});
    }
  }
  return study;
}

TEST_P(EverySampler, SuggestsPointsOfTheSpaceWithAReason) {
  const Study study = run(GetParam(), mixed_space(), 3, 60, 4, false);
  for (const Trial& trial : study.trials()) {
    EXPECT_EQ(study.space().problem_of(trial.point), std::nullopt);
    EXPECT_FALSE(trial.why.empty());
    EXPECT_FALSE(trial.by.empty());
  }
}

TEST_P(EverySampler, ASuggestionDependsOnlyOnTheTrials) {
  const Study one = run(GetParam(), mixed_space(), 5, 50, 4, false);
  const Study other = run(GetParam(), mixed_space(), 5, 50, 4, true);  // a new sampler for every suggestion
  for (int64_t id = 0; id < one.next_id(); ++id) {
    ASSERT_TRUE(same_point(one.trial(id).point, other.trial(id).point)) << id << " by " << one.trial(id).by;
    ASSERT_EQ(one.trial(id).why, other.trial(id).why);
    ASSERT_EQ(one.trial(id).sampler_state, other.trial(id).sampler_state);
  }
}

TEST_P(EverySampler, SuggestsOnlyPointsThatSatisfyTheConstraints) {
  const Study study = run(GetParam(), constrained_space(), 4, 60, 4, false);
  std::set<uint64_t> different;
  for (const Trial& trial : study.trials()) {
    EXPECT_EQ(study.space().problem_of(trial.point), std::nullopt) << trial.by << ": " << trial.why;
    different.insert(hash_of(trial.point));
  }
  EXPECT_GT(different.size(), GetParam() == "pbt" ? 8U : 40U);
}

TEST_P(EverySampler, RepeatsNoPointOfAFiniteSpaceWhileOneIsLeft) {
  if (GetParam() == "pbt") return;  // a member of a population may repeat a point
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const Study study = run(GetParam(), finite_space(), seed, 14, 3, false);
    std::set<std::string> different;
    for (int i = 0; i < 10; ++i) different.insert(write_point(study.space(), study.trial(i).point));
    EXPECT_EQ(different.size(), 10u);
  }
}

TEST_P(EverySampler, TriesEveryPointOfALattice) {
  if (GetParam() == "pbt") return;
  Space space = read_space(R"([{"name":"x","type":"float","low":0,"high":0.3,"step":0.1},
    {"name":"y","type":"float","low":0.1,"high":0.8,"step":0.1}])");
  const Study study = run(GetParam(), std::move(space), 2, 34, 1, false);
  EXPECT_EQ(study.different_points(), 32);
}

TEST_P(EverySampler, HandlesSpacesOfOnePoint) {
  Space space =
      read_space(R"([{"name":"x","type":"float","low":2,"high":2},{"name":"c","type":"cat","choices":["a"]}])");
  const Study study = run(GetParam(), std::move(space), 1, 30, 2, false);
  for (const Trial& trial : study.trials()) EXPECT_EQ(trial.point, (Point{2, 0}));
}

TEST_P(EverySampler, HandlesEqualAndInfiniteValues) {
  const double values[] = {1, 1, std::numeric_limits<double>::infinity(), -1e300, 1e300, 1};
  for (const bool all_equal : {true, false}) {
    Study study({mixed_space(), {Direction::maximize}, 1, 60});
    auto sampler = make_sampler(GetParam());
    for (int i = 0; i < 60; ++i) {
      const int64_t id = study.start(suggest_next(study, *sampler));
      study.tell(id, TrialState::complete, {all_equal ? 1 : values[i % 6]});
    }
  }
}

TEST(Samplers, HandleAnObjectiveWithoutValues) {
  for (const char* name : {"auto", "gp", "trust_region", "tpe", "random", "sobol", "grid"}) {
    for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      Study study({mixed_space(), {Direction::minimize, Direction::minimize}, 1, 40});
      const auto sampler = make_sampler(name);
      for (int i = 0; i < 40; ++i) {
        const int64_t id = study.start(suggest_next(study, *sampler));
        study.tell(id, TrialState::complete, {bowl(study.space(), study.trial(id).point), value});
      }
      EXPECT_EQ(study.next_id(), 40) << name;
    }
  }
}

TEST_P(EverySampler, TriesTheUsersPointsFirst) {
  StudyOptions options{finite_space()};
  options.initial_points = {{2, kInactive, kInactive}, {1, 3, 1}};
  Study study(std::move(options));
  auto sampler = make_sampler(GetParam());
  for (int i = 0; i < 3; ++i) study.start(suggest_next(study, *sampler));
  EXPECT_TRUE(same_point(study.trial(0).point, study.options().initial_points[0]));
  EXPECT_TRUE(same_point(study.trial(1).point, study.options().initial_points[1]));
  EXPECT_FALSE(study.trial(2).by == "first");
}

std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const SamplerMaker& maker : samplers()) names.push_back(maker.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EverySampler, testing::ValuesIn(sampler_names()),
                         [](const auto& each) { return each.param; });

// Trials in a fifth of the space crash. All other points violate the constraint; the violation is smaller the further a
// point is from that fifth.
TEST(Samplers, AvoidCrashesWhileNothingIsFeasible) {
  for (const char* name : {"auto", "gp", "tpe", "cmaes"}) {
    Study study(
        {read_space(R"([{"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":0,"high":1}])"),
         {Direction::minimize},
         5,
         80});
    const auto sampler = make_sampler(name);
    int crashes = 0;
    for (int i = 0; i < 80; ++i) {
      const int64_t id = study.start(suggest_next(study, *sampler));
      const double x = study.trial(id).point[0];
      crashes += i >= 30 && x < 0.2;
      if (x < 0.2)
        study.tell(id, TrialState::failed);
      else
        study.tell(id, TrialState::complete, {x}, {2 - x});
    }
    EXPECT_LT(crashes, 15) << name << ", of 50";
  }
}

// In the last quarter of 60 planned trials, auto uses only the Gaussian process. Without a budget it cannot know when
// the end is near.
TEST(Samplers, AutoUsesOnlyTheGaussianProcessNearTheEnd) {
  for (const int64_t budget : {60, 0}) {
    Study study({mixed_space(), {Direction::minimize}, 3, budget});
    const auto sampler = make_sampler("auto");
    std::set<std::string> middle, end;
    for (int i = 0; i < 60; ++i) {
      const int64_t id = study.start(suggest_next(study, *sampler));
      study.tell(id, TrialState::complete, {bowl(study.space(), study.trial(id).point)});
      (i < 45 ? middle : end).insert(study.trial(id).by);
    }
    EXPECT_GT(middle.size(), 2U);
    EXPECT_EQ(end == std::set<std::string>{"gp"}, budget > 0);
  }
}

TEST(Samplers, SamplersForOneObjectiveRefuseSeveral) {
  for (const SamplerMaker& maker : samplers()) {
    EXPECT_TRUE(make_sampler(maker.name, 1));
    if (!maker.one_objective) {
      EXPECT_TRUE(make_sampler(maker.name, 2));
      continue;
    }
    try {
      make_sampler(maker.name, 2);
      FAIL() << maker.name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode("TUNE_ONE_OBJECTIVE_ONLY"));
      EXPECT_NE(error.hint.find("gp"), std::string::npos);
      EXPECT_EQ(error.hint.find(maker.name), std::string::npos);
    }
  }
}

TEST(Samplers, AnUnknownNameListsTheSamplers) {
  try {
    make_sampler("annealing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("TUNE_UNKNOWN_SAMPLER"));
    EXPECT_NE(error.hint.find("random"), std::string::npos);
  }
}

TEST(Grid, TriesEveryCombinationOnce) {
  Space space = read_space(R"([
    {"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":1,"high":100,"log":true},
    {"name":"c","type":"cat","choices":["a","b","c"]},{"name":"z","type":"float","low":0,"high":1,"if":{"c":["b"]}}])");
  Study study({std::move(space), {Direction::minimize}, 0, 90});
  auto grid = make_sampler("grid");
  std::set<std::string> different;
  std::set<double> x;
  int points = 0;
  for (; points < 3 * 3 * (3 + 1 + 1); ++points) {
    const Suggestion next = suggest_next(study, *grid);
    x.insert(next.point[0]);
    different.insert(write_point(study.space(), next.point));
    study.start(next);
  }
  EXPECT_EQ(x, (std::set<double>{0, 0.5, 1}));  // 3 * 3 * 3 * 3 is the largest grid below 90
  EXPECT_EQ(different.size(), static_cast<size_t>(points));
  EXPECT_TRUE(same_point(suggest_next(study, *grid).point, {0, 1, 1, 0.25})) << "the same again, twice as fine";
}

// This grid has values of more than four digits, such as 1/3 and 10^(-7/3).
TEST(Grid, FindsItsPositionAgainDespiteRounding) {
  Study study({read_space(R"([{"name":"x","type":"float","low":0,"high":1},
                              {"name":"lr","type":"float","low":1e-5,"high":1e-1,"log":true}])"),
               {Direction::minimize},
               0,
               16});
  std::set<double> x, lr;
  for (int i = 0; i < 16; ++i) {
    const int64_t id = study.start(suggest_next(study, *make_sampler("grid")));
    x.insert(study.trial(id).point[0]);
    lr.insert(study.trial(id).point[1]);
  }
  EXPECT_EQ(x, (std::set<double>{0, 0.3333, 0.6667, 1}));
  EXPECT_EQ(lr, (std::set<double>{1e-5, 2.154e-4, 4.642e-3, 1e-1}));
  EXPECT_EQ(study.different_points(), 16);
}

TEST(Grid, UsesAllValuesOfALogarithmicInteger) {
  Study study({read_space(R"([{"name":"n","type":"int","low":1,"high":8,"log":true}])"), {Direction::minimize}, 0, 8});
  const auto grid = make_sampler("grid");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(study.trial(study.start(suggest_next(study, *grid))).point[0], i + 1);
}

TEST(Grid, SkipsTriedPoints) {
  Study study(
      {read_space(R"([{"name":"x","type":"float","low":0,"high":1},{"name":"c","type":"cat","choices":[1,2]}])"),
       {Direction::minimize},
       0,
       10,
       {{0.25, 0}, {0.25, 1}, {0.5, 1}}});
  for (int i = 0; i < 10; ++i) study.start(suggest_next(study, *make_sampler("grid")));
  std::set<double> x;
  for (const Trial& trial : study.trials()) x.insert(trial.point[0]);
  EXPECT_EQ(x, (std::set<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(study.different_points(), 10);
}

}  // namespace
}  // namespace sinew::tune
