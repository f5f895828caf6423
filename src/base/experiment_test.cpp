#include "base/experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"

namespace sinew {
namespace {

// Runs the experiment with the times that `seconds` gives for a condition and the number of the step.
template <typename Seconds>
std::vector<ConditionTime> made(Experiment experiment, Seconds seconds) {
  for (int64_t step = 0; !experiment.done(); ++step) {
    EXPECT_LT(step, 100'000);
    experiment.after(seconds(experiment.next(), step));
  }
  return experiment.results();
}

TEST(Experiment, FindsWhatAConditionCostsOnAMachineThatBecomesSlower) {
  const std::map<Condition, double> truth = {{Condition::usual, 1},
                                             {Condition::samples_ready, 0.4},
                                             {Condition::cores_busy, 1.8},
                                             {Condition::memory_busy, 2.7}};
  const Experiment experiment({Condition::samples_ready, Condition::cores_busy, Condition::memory_busy}, 5);
  const auto results = made(experiment, [&](Condition condition, int64_t step) {
    return truth.at(condition) * 0.01 * (1 + 0.002 * static_cast<double>(step));
  });
  ASSERT_EQ(results.size(), 4);
  EXPECT_EQ(results[0].condition, Condition::usual);
  EXPECT_DOUBLE_EQ(results[0].ratio.expected, 1);
  EXPECT_NEAR(results[1].ratio.expected, 0.4, 0.01);
  EXPECT_NEAR(results[2].ratio.expected, 1.8, 0.03);
  EXPECT_NEAR(results[3].ratio.expected, 1.5, 0.03);  // beside cores_busy
  EXPECT_GT(results[1].seconds, 0.004);
  EXPECT_LT(results[1].seconds, 0.006);
}

TEST(Experiment, DoesNotCountTheFirstStepsOfAWindow) {
  Condition before = Condition::memory_busy;
  const auto results = made(Experiment({Condition::half_lanes}, 10), [&](Condition condition, int64_t) {
    const bool first = condition != before;
    before = condition;
    return first ? 100.0 : condition == Condition::usual ? 1.0 : 2.0;
  });
  EXPECT_DOUBLE_EQ(results[1].ratio.expected, 2);
  EXPECT_EQ(results[1].steps, 6 * 8);
}

TEST(Experiment, ItsRangeHoldsTheTruthInAboutNineOfTenCases) {
  int inside = 0;
  double width = 0;
  constexpr int kTries = 400;
  for (uint64_t seed = 0; seed < kTries; ++seed) {
    RandomStream random(random_key({seed, 7}));
    const auto results = made(Experiment({Condition::samples_ready}, 4), [&](Condition condition, int64_t) {
      const double noise = std::exp(0.2 * (random.uniform() + random.uniform() + random.uniform() - 1.5));
      return (condition == Condition::usual ? 1.0 : 0.7) * noise;
    });
    const StepRatio& ratio = results[1].ratio;
    inside += ratio.low <= 0.7 && 0.7 <= ratio.high ? 1 : 0;
    width += (ratio.high - ratio.low) / kTries;
  }
  EXPECT_GT(inside, 0.85 * kTries);
  EXPECT_LT(inside, 0.96 * kTries);
  EXPECT_LT(width, 0.2);
}

TEST(Experiment, HasNoResultsBeforeItsEnd) {
  Experiment experiment({Condition::half_lanes, Condition::half_lanes, Condition::usual}, 1);
  int64_t steps = 0;
  for (; !experiment.done(); ++steps) {
    EXPECT_TRUE(experiment.results().empty());
    experiment.after(1);
  }
  EXPECT_EQ(steps, 6 * 2);  // each condition counts once
  EXPECT_EQ(experiment.results().size(), 2);
  experiment.after(100);
  EXPECT_EQ(experiment.next(), Condition::usual);
  EXPECT_DOUBLE_EQ(experiment.results()[1].ratio.expected, 1);
}

TEST(Experiment, AWindowLastsLongEnoughToBeMeasured) {
  EXPECT_EQ(Experiment::window_for(10), 3);
  EXPECT_EQ(Experiment::window_for(0.01), 15);
  EXPECT_EQ(Experiment::window_for(1e-9), 200);
  EXPECT_EQ(Experiment::window_for(0), 20) << "not known";
}

TEST(Experiment, EachConditionHasAName) {
  for (size_t i = 0; i < kConditions; ++i) {
    const auto condition = static_cast<Condition>(i);
    EXPECT_EQ(condition_of(name_of(condition)), condition);
  }
  EXPECT_EQ(condition_of("fewer"), std::nullopt);
}

}  // namespace
}  // namespace sinew
