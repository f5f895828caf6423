// Compares best_trials() with a search over all pairs of trials.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tune/tune.h"

namespace sinew::tune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kLine = R"([{"name":"x","type":"float","low":0,"high":1}])";

struct Made {
  std::vector<double> values, constraints = {};
  TrialState state = TrialState::complete;
};

std::vector<int64_t> best_of(std::vector<Direction> directions, const std::vector<Made>& trials) {
  Study study({read_space(kLine), std::move(directions)});
  for (const Made& made : trials) {
    const int64_t id = study.start({{0.5}, "test", "", {}});
    if (made.state != TrialState::running) study.tell(id, made.state, made.values, made.constraints);
  }
  return best_trials(study);
}

TEST(BestTrials, WithOneObjectiveReturnsTheFirstBestTrial) {
  const auto least = [](const std::vector<Made>& trials) { return best_of({Direction::minimize}, trials); };
  EXPECT_THAT(least({}), IsEmpty());
  EXPECT_THAT(least({{{3}}, {{1}}, {{1}}, {{2}}}), ElementsAre(1));
  EXPECT_THAT(best_of({Direction::maximize}, {{{3}}, {{1}}, {{3}}}), ElementsAre(0));
  EXPECT_THAT(least({{{std::nan("")}}, {{INFINITY}}, {{-INFINITY}}}), IsEmpty());
  EXPECT_THAT(
      least({{{5}}, {{1}, {}, TrialState::pruned}, {{}, {}, TrialState::failed}, {{}, {}, TrialState::running}}),
      ElementsAre(0));
}

TEST(BestTrials, PrefersFeasibleTrialsElseTheSmallestViolation) {
  const auto least = [](const std::vector<Made>& trials) { return best_of({Direction::minimize}, trials); };
  EXPECT_THAT(least({{{1}, {0.5}}, {{3}, {0, -1}}, {{2}, {-1, 0}}}), ElementsAre(2));
  EXPECT_THAT(least({{{1}, {0.5}}, {{2}, {0.2, 0.2}}, {{3}, {0.4, -7}}, {{0}, {0.4, 0}}}), ElementsAre(3));
  EXPECT_THAT(least({{{1}, {std::nan("")}}}), IsEmpty());
}

TEST(BestTrials, WithSeveralObjectivesReturnsTheParetoFront) {
  RandomStream random(random_key({5}));
  for (int round = 0; round < 200; ++round) {
    std::vector<Made> trials(1 + random.below(30));
    for (Made& made : trials) {
      const auto drawn = [&] { return static_cast<double>(random.below(6)); };
      made = {{drawn(), drawn(), drawn()}, {drawn() - 4}};
    }
    const bool some = std::ranges::any_of(trials, [](const Made& made) { return made.constraints[0] <= 0; });
    if (!some) continue;
    std::vector<int64_t> expected;
    for (size_t i = 0; i < trials.size(); ++i) {
      bool stays = trials[i].constraints[0] <= 0;
      for (size_t j = 0; j < trials.size() && stays; ++j) {
        const auto &a = trials[i].values, &b = trials[j].values;
        if (trials[j].constraints[0] > 0) continue;
        const bool as_good = b[0] <= a[0] && b[1] >= a[1] && b[2] <= a[2];
        stays = !as_good || (a == b && j >= i);
      }
      if (stays) expected.push_back(static_cast<int64_t>(i));
    }
    EXPECT_EQ(best_of({Direction::minimize, Direction::maximize, Direction::minimize}, trials), expected);
  }
}

}  // namespace
}  // namespace sinew::tune
