// Tests that BOHB compares only trainings of the same length, and that pruners with rungs estimate the final value of a
// paused trial.
#include <gtest/gtest.h>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

Space bohb_line() {
  return read_space(R"([{"name":"x","type":"float","low":0,"high":1}])");
}

TEST(Bohb, UsesTheLongestTrainingsIfThereAreEnough) {
  // Short trainings favour 0.9, long ones 0.1.
  Study study({bohb_line(), {Direction::minimize}, 3, 0});
  RandomStream random(random_key({1}));
  for (int i = 0; i < 80; ++i) {
    const double x = random.uniform();
    const int64_t id = study.start({{x}, "", "", {}});
    study.report(id, 1, std::abs(x - 0.9));
    if (i % 2 == 0) study.report(id, 9, 5 + std::abs(x - 0.1));
    if (i % 4 == 0) study.tell(id, TrialState::complete, {5 + std::abs(x - 0.1)});
  }
  const auto sampler = make_sampler("bohb");
  int near_long = 0, near_short = 0, modelled = 0;
  for (int i = 0; i < 60; ++i) {
    const Suggestion suggestion = sampler->suggest(study);
    near_long += suggestion.point[0] < 0.35;
    near_short += suggestion.point[0] > 0.65;
    modelled += suggestion.why.find("at their end") != std::string::npos;
    study.start(suggestion);
  }
  EXPECT_GT(modelled, 25) << "a third is random";
  EXPECT_LT(modelled, 55);
  EXPECT_GT(near_long, 2 * near_short);
}

TEST(Bohb, AnInfeasibleTrialIsNotGood) {
  Study study({bohb_line(), {Direction::minimize}, 3, 0});
  RandomStream random(random_key({5}));
  for (int i = 0; i < 80; ++i) {
    const double x = random.uniform();
    study.tell(study.start({{x}, "", "", {}}), TrialState::complete, {x}, {0.5 - x});
  }
  const auto sampler = make_sampler("bohb");
  int infeasible = 0;
  for (int i = 0; i < 60; ++i) infeasible += study.trial(study.start(sampler->suggest(study))).point[0] < 0.4;
  EXPECT_LT(infeasible, 20) << "a third is random";
}

TEST(Bohb, UsesShorterTrainingsWhileThereAreTooFewLongOnes) {
  Study study({bohb_line(), {Direction::minimize}, 3, 0});
  RandomStream random(random_key({2}));
  for (int i = 0; i < 30; ++i) {
    const double x = random.uniform();
    const int64_t id = study.start({{x}, "", "", {}});
    study.report(id, 3, std::abs(x - 0.5));
    if (i < 2) study.tell(id, TrialState::complete, {1});
  }
  const auto sampler = make_sampler("bohb");
  bool said = false;
  for (int i = 0; i < 20; ++i) {
    const Suggestion suggestion = sampler->suggest(study);
    said |= suggestion.why.find("at step 3") != std::string::npos;
    study.start(suggestion);
  }
  EXPECT_TRUE(said);
}

TEST(Rungs, APausedTrialIsExpectedToImproveAsTheOthersDid) {
  PrunerOptions options;
  options.name = "asha";
  options.max_resource = 9;
  const auto pruner = make_pruner(options);
  Study study({bohb_line(), {Direction::minimize}, 1, 0});
  const auto begin = [&](double x) { return study.start({{x}, "", "", {}}); };
  for (const double drop : {0.5, 0.6, 0.9}) {
    const int64_t id = begin(drop);
    study.report(id, 1, 1);
    study.report(id, 9, 1 - drop);
    study.tell(id, TrialState::complete, {1 - drop});
  }
  const int64_t id = begin(0.2);
  study.report(id, 1, 2);
  const Verdict verdict = pruner->judge(study, study.trial(id));
  EXPECT_EQ(verdict.decision, PruneDecision::pause);
  ASSERT_TRUE(verdict.estimate);
  EXPECT_NEAR(*verdict.estimate, 2 - 0.6, 1e-12);
  study.pause(id, verdict.estimate);
  EXPECT_NEAR(*study.known_loss(study.trial(id)), 1.4, 1e-12);
}

}  // namespace
}  // namespace sinew::tune
