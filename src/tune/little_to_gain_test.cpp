// Tests that a study of a simple function ends long before its budget and finds just as good a value, and that a study
// of noise does not end early.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

struct Ended {
  int trials = 0;
  double best = 1e9, first = 0;
};

Ended run(uint64_t seed, const std::function<double(const Point&)>& function, int most) {
  Study study(
      {read_space(R"([{"name":"a","type":"float","low":0,"high":1},{"name":"b","type":"float","low":0,"high":1}])"),
       {Direction::minimize},
       seed,
       most});
  const auto sampler = make_sampler("auto");
  Ended ended;
  for (; ended.trials < most && !little_to_gain(study); ++ended.trials) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    const double value = function(study.trial(id).point);
    ended.best = std::min(ended.best, value);
    study.tell(id, TrialState::complete, {value});
  }
  return ended;
}

TEST(LittleToGain, EndsAStudyThatHasConverged) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto bowl = [](const Point& p) { return std::pow(p[0] - 0.4, 2) + 2 * std::pow(p[1] - 0.7, 2); };
    const Ended ended = run(seed, bowl, 100);
    EXPECT_LT(ended.trials, 50);
    EXPECT_LT(ended.best, 0.01);
  }
}

TEST(LittleToGain, ContinuesWhileTheValuesAreNoise) {
  // Values that no model can predict.
  const auto noise = [](const Point& p) {
    return RandomStream(random_key({static_cast<uint64_t>(p[0] * 1e6), static_cast<uint64_t>(p[1] * 1e6)})).uniform();
  };
  EXPECT_EQ(run(1, noise, 60).trials, 60);
}

TEST(LittleToGain, GivesTheReasonAndIgnoresSuggestionsWithoutGain) {
  Study study({read_space(R"([{"name":"a","type":"float","low":0,"high":1}])"), {Direction::minimize}});
  for (int i = 0; i < 40; ++i) {
    Suggestion suggestion{{i / 40.0}, "tpe", "", {}};
    if (i >= 30) suggestion.gain = 0.001;
    EXPECT_EQ(little_to_gain(study).has_value(), i >= 35) << i;
    study.tell(study.start(suggestion), TrialState::complete, {0.5});
  }
  EXPECT_NE(little_to_gain(study)->find("0.1 %"), std::string::npos);
}

// Three trials run beside the next one, so each group of four counts once: 17 suggestions count as five.
TEST(LittleToGain, ParallelSuggestionsCountAsOne) {
  Study study({read_space(R"([{"name":"a","type":"float","low":0,"high":1}])"), {Direction::minimize}});
  for (int64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(little_to_gain(study).has_value(), i >= 30 + 17) << i;
    study.start({{static_cast<double>(i) / 60}, "gp", "", {}, i < 30 ? 0.5 : 0.001});
    if (i >= 3) study.tell(i - 3, TrialState::complete, {0.5});
  }
}

}  // namespace
}  // namespace sinew::tune
