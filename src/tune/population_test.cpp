#include <gtest/gtest.h>

#include <algorithm>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

std::vector<PopulationMember> population(const Space& space, size_t count, uint64_t seed) {
  RandomStream random(random_key({seed}));
  std::vector<PopulationMember> members;
  for (size_t i = 0; i < count; ++i) members.push_back({random_point(space, random), random.normal()});
  return members;
}

TEST(Population, OnlyTheWorstFifthCopiesAndOnlyFromTheBest) {
  const Space space = mixed_space();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto members = population(space, 20, seed);
    std::vector<double> losses;
    for (const PopulationMember& member : members) losses.push_back(member.loss);
    std::ranges::sort(losses);
    for (size_t me = 0; me < members.size(); ++me) {
      const auto step = population_step(space, members, me, RandomStream(random_key({seed, me})));
      EXPECT_EQ(space.problem_of(step.point), std::nullopt);
      if (members[me].loss >= losses[16]) {
        EXPECT_LE(members[step.from].loss, losses[3]);
      } else {
        EXPECT_EQ(step.from, me);
        EXPECT_TRUE(same_point(step.point, members[me].point));
      }
    }
  }
}

TEST(Population, InASmallPopulationTheWorstCopiesTheBest) {
  const Space space = mixed_space();
  auto members = population(space, 1, 1);
  EXPECT_EQ(population_step(space, members, 0, RandomStream(random_key({1}))).from, 0u);
  members = population(space, 3, 1);
  for (size_t me = 0; me < 3; ++me) members[me].loss = static_cast<double>(me);
  for (size_t me = 0; me < 3; ++me)
    EXPECT_EQ(population_step(space, members, me, RandomStream(random_key({1}))).from, me < 2 ? me : 0);
}

TEST(Population, AMemberWithoutAFiniteLossCopiesAndIsNeverCopied) {
  const Space space = mixed_space();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto members = population(space, 10, seed);
    for (const size_t bad : {1, 4, 5, 8}) members[bad].loss = bad % 2 == 0 ? INFINITY : NAN;
    for (size_t me = 0; me < 10; ++me) {
      const size_t from = population_step(space, members, me, RandomStream(random_key({seed, me}))).from;
      EXPECT_TRUE(std::isfinite(members[from].loss)) << me;
    }
  }
}

TEST(Population, EqualMembersContinueUnchanged) {
  const Space space = mixed_space();
  auto members = population(space, 10, 1);
  for (PopulationMember& member : members) member.loss = 2;
  for (size_t me = 0; me < 10; ++me)
    EXPECT_EQ(population_step(space, members, me, RandomStream(random_key({1}))).from, me);
}

TEST(Population, NumbersMoveByAFifthOrAreDrawnAnew) {
  const Space space = read_space(R"([{"name":"x","type":"float","low":0,"high":100}])");
  std::vector<PopulationMember> members;
  for (int i = 0; i < 10; ++i) members.push_back({{50}, static_cast<double>(i)});
  members[9].loss = std::nan("");
  int up = 0, down = 0, anew = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const double x = population_step(space, members, 9, RandomStream(random_key({seed}))).point[0];
    (x == 60 ? up : x == 40 ? down : anew) += 1;
  }
  EXPECT_NEAR(up, 375, 80);
  EXPECT_NEAR(down, 375, 80);
  EXPECT_NEAR(anew, 250, 70);
}

}  // namespace
}  // namespace sinew::tune
