// Tests the rules of CMA-ES. samplers_test.cpp tests what holds for every sampler.
#include <gtest/gtest.h>

#include <set>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

// The sampler_state of the first trial of a generation holds its coordinates, the number of the generation, the size of
// the generation, its step size and its mean.
TEST(Cmaes, BeginsAtTheBestPointOfOthersAndRestartsAnywhere) {
  Study study(
      {read_space(R"([{"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":0,"high":1}])"),
       {Direction::minimize},
       5,
       2000});
  const auto sphere = [](const Point& p) { return std::pow(p[0] - 0.31, 2) + std::pow(p[1] - 0.62, 2); };
  study.tell(study.start({{0.25, 0.75}, "gp", "", {}}), TrialState::complete, {sphere({0.25, 0.75})});
  const auto sampler = make_sampler("cmaes");
  std::vector<std::pair<double, Point>> begun;
  for (int i = 0; i < 1500; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    const Trial& trial = study.trial(id);
    if (trial.sampler_state.size() > 2 && trial.sampler_state[2] == 0)
      begun.push_back({trial.sampler_state[3], {trial.sampler_state[5], trial.sampler_state[6]}});
    study.tell(id, TrialState::complete, {sphere(study.trial(id).point)});
  }
  ASSERT_GE(begun.size(), 3U) << "it has converged twice";
  EXPECT_EQ(begun[0].second, (Point{0.25, 0.75}));
  std::set<Point> means;
  for (size_t k = 0; k < begun.size(); ++k) {
    means.insert(begun[k].second);
    if (k > 0) {
      EXPECT_EQ(begun[k].first, 2 * begun[k - 1].first) << "twice as many trials a generation";
    }
  }
  EXPECT_EQ(means.size(), begun.size());
  EXPECT_LT(study.loss(study.trial(best_trials(study)[0])), 1e-10);
}

}  // namespace
}  // namespace sinew::tune
