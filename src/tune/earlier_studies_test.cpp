// Tests three things: earlier studies are translated to a changed space, warm starts help, and unrelated studies do no
// harm.
#include <gtest/gtest.h>

#include <limits>

#include "tune/gp_transfer.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

Study then_study() {
  Study study({read_space(R"([{"name":"lr","type":"float","low":1e-4,"high":1e-1,"log":true},
    {"name":"act","type":"cat","choices":["relu","tanh"]},{"name":"width","type":"int","low":8,"high":64},
    {"name":"gone","type":"float","low":0,"high":1}])"),
               {Direction::maximize}});
  const auto tell = [&](Point point, TrialState state, std::vector<double> values) {
    study.tell(study.start({std::move(point), "", "", {}}), state, std::move(values));
  };
  tell({1e-2, 0, 16, 0.5}, TrialState::complete, {0.9});
  tell({1e-3, 1, 64, 0.1}, TrialState::complete, {0.7});
  tell({1e-1, 0, 8, 0.1}, TrialState::failed, {});
  study.start({{1e-2, 1, 8, 0.2}, "", "", {}});  // still running
  return study;
}

TEST(Earlier, AWidenedRangeAndAnAddedChoiceKeepTheirHistory) {
  const Space space = read_space(R"([{"name":"act","type":"cat","choices":["gelu","relu","tanh"]},
    {"name":"lr","type":"float","low":1e-6,"high":1,"log":true},{"name":"fresh","type":"float","low":0,"high":1},
    {"name":"width","type":"int","low":4,"high":128}])");
  const EarlierStudy earlier = make_earlier_study(space, then_study(), "then");
  ASSERT_EQ(earlier.points.size(), 3U) << "a trial that runs tells nothing";
  EXPECT_EQ(earlier.losses[0], -0.9) << "to minimise";
  EXPECT_TRUE(std::isinf(earlier.losses[2]));
  const Point first = space.from_unit(earlier.points[0]);
  EXPECT_EQ(first[0], 1) << "relu";
  EXPECT_NEAR(first[1], 1e-2, 1e-12);
  EXPECT_TRUE(std::isnan(earlier.points[0][2])) << "nobody knows what it was";
  EXPECT_EQ(first[3], 16);
}

TEST(Earlier, TrialsOutsideTheNewSpaceAreLeftOut) {
  const Space narrow = read_space(R"([{"name":"lr","type":"float","low":5e-3,"high":1,"log":true}])");
  EXPECT_EQ(make_earlier_study(narrow, then_study(), "").points.size(), 2U);
  const Space fewer = read_space(R"([{"name":"act","type":"cat","choices":["relu"]}])");
  EXPECT_EQ(make_earlier_study(fewer, then_study(), "").points.size(), 2U);
  EXPECT_TRUE(make_earlier_study(read_space(R"([{"name":"x","type":"float","low":0,"high":1}])"), then_study(), "")
                  .points.empty());
  EXPECT_TRUE(make_earlier_study(read_space(R"([{"name":"lr","type":"cat","choices":["a"]}])"), then_study(), "")
                  .points.empty());
}

// A stretched bowl in four dimensions, with its minimum at `home` along every axis.
constexpr const char* kCube =
    R"([{"name":"a","type":"float","low":0,"high":1},{"name":"b","type":"float","low":0,"high":1},
  {"name":"c","type":"float","low":0,"high":1},{"name":"d","type":"float","low":0,"high":1}])";

double bowl_at(const Point& point, double home) {
  double sum = 0;
  for (size_t i = 0; i < point.size(); ++i)
    sum += (1 + static_cast<double>(i)) * std::abs(point[i] - home) + std::pow(point[i] - home, 2);
  return sum;
}

double best_of(uint64_t seed, int trials, std::vector<EarlierStudy> earlier, double home) {
  Study study({read_space(kCube), {Direction::minimize}, seed, trials, {}, std::move(earlier)});
  const auto sampler = make_sampler("auto");
  double best = 1e9;
  for (int i = 0; i < trials; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    const double value = bowl_at(study.trial(id).point, home);
    study.tell(id, TrialState::complete, {value});
    best = std::min(best, value);
  }
  return best;
}

EarlierStudy even_study(uint64_t seed, double home, double sign) {
  Study study({read_space(kCube), {Direction::minimize}});
  RandomStream random(random_key({seed}));
  for (int i = 0; i < 60; ++i) {
    const int64_t id = study.start({random_point(study.space(), random), "", "", {}});
    study.tell(id, TrialState::complete, {sign * bowl_at(study.trial(id).point, home)});
  }
  return make_earlier_study(study.space(), study, "");
}

TEST(Earlier, SimilarStudiesHelpAndOthersDoNoHarm) {
  double cold = 0, warm = 0, misled = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    cold += best_of(seed, 12, {}, 0.6);
    warm += best_of(seed, 12, {even_study(seed, 0.55, 1), even_study(seed + 50, 0.65, 1)}, 0.6);
    misled += best_of(seed, 14, {even_study(seed, 0.55, -1), even_study(seed + 50, 0.1, -1)}, 0.6);
  }
  EXPECT_LT(warm, 0.6 * cold);
  EXPECT_LT(misled, 1.6 * cold) << "two trials more, for the two that others were best at";
}

TEST(Earlier, StudiesWithAShiftedBestPointHelpToo) {
  double cold = 0, warm = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    cold += best_of(seed, 16, {}, 0.6);
    warm += best_of(seed, 16, {even_study(seed, 0.45, 1), even_study(seed + 50, 0.75, 1)}, 0.6);
  }
  EXPECT_LT(warm, 0.5 * cold);
}

TEST(Earlier, EqualStudiesSuggestDifferentPoints) {
  Study study({read_space(kCube), {Direction::minimize}, 3, 30, {}, {even_study(1, 0.5, 1), even_study(1, 0.5, 1)}});
  const auto sampler = make_sampler("auto");
  for (int i = 0; i < 2; ++i) study.start(suggest_next(study, *sampler));
  EXPECT_EQ(study.trial(1).by, "earlier");
  double apart = 0;
  for (size_t i = 0; i < 4; ++i) apart = std::max(apart, std::abs(study.trial(0).point[i] - study.trial(1).point[i]));
  EXPECT_GT(apart, 0.01);
}

TEST(Earlier, AFailedTrialIsNeverSuggested) {
  EarlierStudy earlier = even_study(1, 0.5, 1);
  for (size_t i = 1; i < earlier.losses.size(); ++i) earlier.losses[i] = std::numeric_limits<double>::infinity();
  Study study({read_space(kCube), {Direction::minimize}, 3, 30, {}, {earlier, earlier}});
  const auto sampler = make_sampler("auto");
  for (int i = 0; i < 2; ++i) study.start(suggest_next(study, *sampler));
  EXPECT_EQ(study.trial(0).by, "earlier");
  EXPECT_NE(study.trial(1).by, "earlier") << "the second study knows nothing good besides";
}

TEST(Earlier, ASuggestionDependsOnlyOnTheTrials) {
  const auto run = [](bool fresh) {
    Study study({read_space(kCube), {Direction::minimize}, 3, 30, {}, {even_study(1, 0.5, 1)}});
    auto sampler = make_sampler("gp");
    for (int i = 0; i < 25; ++i) {
      if (fresh) sampler = make_sampler("gp");
      const int64_t id = study.start(suggest_next(study, *sampler));
      study.tell(id, TrialState::complete, {bowl_at(study.trial(id).point, 0.6)});
    }
    return study;
  };
  const Study one = run(false), other = run(true);
  for (int64_t id = 0; id < 25; ++id) {
    ASSERT_TRUE(same_point(one.trial(id).point, other.trial(id).point)) << id;
    ASSERT_EQ(one.trial(id).sampler_state, other.trial(id).sampler_state) << id;
  }
  EXPECT_EQ(one.trial(0).by, "earlier");
}

TEST(Transfer, IsUsedOnlyIfItRanksThisStudyNoWorse) {
  RandomStream random(random_key({5}));
  Points points(12, 4);
  std::vector<double> losses;
  for (Eigen::Index i = 0; i < 12; ++i) {
    Point point(4);
    for (size_t k = 0; k < 4; ++k) points(i, static_cast<Eigen::Index>(k)) = point[k] = random.uniform();
    losses.push_back(bowl_at(point, 0.6));
  }
  const std::vector<Axis> axes(4);
  const FitRecord fit = Fitter(axes, points, 12, nullptr).fit(losses, true);
  const GaussianProcess alone(axes, fit.log_parameters, points, warp(losses, fit.warp).values);
  const auto joint = [&](double sign) {
    return joint_model_of({even_study(7, 0.6, sign)}, axes, points, losses, 12, nullptr).process;
  };
  EXPECT_TRUE(ranks_better(joint(1), alone, losses));
  const GaussianProcess like = joint(1);
  EXPECT_EQ(like.point(0).size(), 4) << "this study's coordinates only";
  EXPECT_FALSE(ranks_better(joint(-1), like, losses)) << "the opposite is no better than the same";
}

}  // namespace
}  // namespace sinew::tune
