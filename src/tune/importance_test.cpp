// Compares the forest with its training rows, and importance with functions of known variance.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tune/forest.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

double said(const Tree& tree, const std::vector<double>& unit) {
  double sum = 0;
  int holding = 0;
  for (const Leaf& leaf : tree) {
    bool inside = true;
    for (size_t i = 0; i < unit.size(); ++i) inside &= leaf.box[i].holds(unit[i]);
    if (inside) sum += leaf.value, ++holding;
  }
  EXPECT_EQ(holding, 1) << "boxes fill the cube and do not overlap";
  return sum;
}

TEST(Forest, ItsBoxesFillTheCubeAndFollowTheValues) {
  const Space space = mixed_space();
  RandomStream random(random_key({4}));
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 0; i < 300; ++i) {
    const Point point = random_point(space, random);
    rows.push_back(space.to_unit(point));
    values.push_back(bowl(space, point));
  }
  const auto forest = grow_forest(space, rows, values, random_key({1}), {.trees = 5});
  ASSERT_EQ(forest.size(), 5U);
  for (const Tree& tree : forest) {
    double volume = 0;
    for (const Leaf& leaf : tree) volume += leaf.volume();
    EXPECT_NEAR(volume, 1, 1e-9);
    std::vector<double> anywhere(space.size());
    double wrong = 0, spread = 0, mean = 0;
    for (const double value : values) mean += value / 300;
    for (int i = 0; i < 300; ++i) {
      for (double& u : anywhere) u = random.uniform();
      said(tree, anywhere);
      const auto& unit = rows[static_cast<size_t>(i)];
      if (std::ranges::any_of(unit, [](double u) { return std::isnan(u); })) continue;
      wrong += std::pow(said(tree, unit) - values[static_cast<size_t>(i)], 2);
      spread += std::pow(mean - values[static_cast<size_t>(i)], 2);
    }
    EXPECT_LT(wrong, 0.7 * spread);
  }
}

TEST(Forest, AParameterSplitsOnlyWhereItIsActive) {
  const Space space = mixed_space();  // gamma needs kernel rbf, and kernel needs act relu or 3
  RandomStream random(random_key({6}));
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) {
    rows.push_back(space.to_unit(random_point(space, random)));
    values.push_back(std::isnan(rows.back()[9]) ? 0 : 5 + rows.back()[9]);
  }
  size_t split = 0;
  for (const Tree& tree : grow_forest(space, rows, values, random_key({2}))) {
    for (const Leaf& leaf : tree) {
      const bool whole = leaf.box[9].low == 0 && leaf.box[9].high == 1;
      split += !whole;
      for (const size_t other : {1, 2, 3, 4}) {  // act tanh, true and null have no kernel, so no gamma
        if (!whole && other != 2) {
          EXPECT_FALSE(leaf.box[6].choices[other]) << other;
        }
      }
    }
  }
  EXPECT_GT(split, 0U);
}

Study told(Space space, uint64_t seed, int trials, const std::function<double(const std::vector<double>&)>& function) {
  Study study({std::move(space), {Direction::minimize}, seed, trials});
  RandomStream random(random_key({seed, 3}));
  for (int i = 0; i < trials; ++i) {
    const int64_t id = study.start({random_point(study.space(), random), "random", "", {}});
    study.tell(id, TrialState::complete, {function(study.space().to_unit(study.trial(id).point))});
  }
  return study;
}

constexpr const char* kFour = R"([{"name":"a","type":"float","low":0,"high":1},
  {"name":"b","type":"float","low":1e-4,"high":1,"log":true},{"name":"c","type":"int","low":1,"high":10},
  {"name":"d","type":"cat","choices":["x","y"]}])";

TEST(Importance, FindsTheVarianceOfEachTermOfASum) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    // The variances are a: 1/12, b: 4/12, c: 0, d: 1/4.
    const Study study = told(read_space(kFour), seed, 400,
                             [](const std::vector<double>& u) { return u[0] + 2 * u[1] + (u[3] > 0.5 ? 1 : 0); });
    const auto importance = importance_of(study);
    ASSERT_TRUE(importance);
    const double whole = 1.0 / 12 + 4.0 / 12 + 0.25;
    EXPECT_NEAR(importance->alone[0], 1.0 / 12 / whole, 0.06);
    EXPECT_NEAR(importance->alone[1], 4.0 / 12 / whole, 0.06);
    EXPECT_NEAR(importance->alone[2], 0, 0.03);
    EXPECT_NEAR(importance->alone[3], 0.25 / whole, 0.06);
    EXPECT_EQ(importance->trials, 400);
    for (const auto& pair : importance->pairs) EXPECT_LT(pair.share, 0.06);
  }
}

TEST(Importance, FindsTheInteractionOfTwoParameters) {
  const Study study = told(read_space(kFour), 5, 400,
                           [](const std::vector<double>& u) { return (u[0] > 0.5) == (u[3] > 0.5) ? 1.0 : 0.0; });
  const auto importance = importance_of(study);
  ASSERT_TRUE(importance);
  EXPECT_LT(importance->alone[0] + importance->alone[3], 0.25);
  ASSERT_FALSE(importance->pairs.empty());
  EXPECT_EQ(importance->pairs[0].first, 0U);
  EXPECT_EQ(importance->pairs[0].second, 3U);
  EXPECT_GT(importance->pairs[0].share, 0.6);
}

TEST(Importance, DoesNotDependOnWhereSamplersLooked) {
  // Nine of ten trials are near one corner, where b has nearly no effect; over the whole space b has the largest
  // effect.
  Study study({read_space(kFour), {Direction::minimize}, 1, 0});
  RandomStream random(random_key({9}));
  for (int i = 0; i < 500; ++i) {
    const double near = i % 10 == 0 ? 1 : 0.2;
    const std::vector<double> unit = {random.uniform(), near * random.uniform(), random.uniform(), random.uniform()};
    const int64_t id = study.start({study.space().from_unit(unit), "here", "", {}});
    study.tell(id, TrialState::complete, {2 * unit[1] + 0.5 * unit[0]});
  }
  const auto importance = importance_of(study);
  ASSERT_TRUE(importance);
  EXPECT_GT(importance->alone[1], 0.75);
}

TEST(Importance, IsRepeatableAndToleratesFailures) {
  const auto function = [](const std::vector<double>& u) { return u[0] > 0.9 ? std::nan("") : u[0]; };
  const Study one = told(mixed_space(), 8, 60, function), other = told(mixed_space(), 8, 60, function);
  const auto a = importance_of(one), b = importance_of(other);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->alone, b->alone);
  EXPECT_GT(a->alone[0], 0.5);
  EXPECT_FALSE(importance_of(told(mixed_space(), 8, 9, function)));
  const auto flat = importance_of(told(mixed_space(), 8, 30, [](const auto&) { return 1.0; }));
  ASSERT_TRUE(flat);
  for (const double share : flat->alone) EXPECT_EQ(share, 0);
  EXPECT_TRUE(flat->pairs.empty());
}

}  // namespace
}  // namespace sinew::tune
