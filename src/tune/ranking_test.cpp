// Compares the ranking, updated as the study grows, with its definition.
#include "tune/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

bool dominates(const Study& study, const Trial& a, const Trial& b) {
  bool better = false;
  for (size_t k = 0; k < study.objectives(); ++k) {
    if (study.loss(a, k) > study.loss(b, k)) return false;
    better |= study.loss(a, k) < study.loss(b, k);
  }
  return better;
}

std::vector<int32_t> by_definition(const Study& study) {
  std::vector<int32_t> order(study.observed().begin(), study.observed().end());
  std::ranges::stable_sort(order, {}, [&](int32_t id) {
    const Trial& trial = study.trial(id);
    const auto dominated = [&](int64_t other) { return dominates(study, study.trial(other), trial); };
    const double loss = study.objectives() == 1 ? study.loss(trial) : 0;
    return std::tuple(Study::violation(trial), loss, std::ranges::count_if(study.observed(), dominated));
  });
  return order;
}

TEST(Ranking, MatchesItsDefinitionAsTheStudyGrows) {
  for (const size_t objectives : {1, 2, 3}) {
    Study study({read_space(R"([{"name":"x","type":"float","low":0,"high":1}])"),
                 std::vector<Direction>(objectives, Direction::maximize)});
    RandomStream random(random_key({objectives}));
    Ranking kept;
    for (int i = 0; i < 150; ++i) {
      study.start({{random.uniform()}, "", "", {}});
      study.start({{random.uniform()}, "", "", {}});
      const int64_t id = study.open()[random.below(study.open().size())];
      if (random.uniform() < 0.1) {
        study.tell(id, TrialState::failed);
      } else {
        std::vector<double> values(objectives);
        for (double& value : values)
          value = random.uniform() < 0.05 ? std::nan("") : 0.1 * static_cast<double>(random.below(10));
        study.tell(id, TrialState::complete, values, {random.uniform() < 0.2 ? random.uniform() : -1});
      }
      if (i % 3 == 0) continue;  // skipped, so that follow() also adds several trials at once
      kept.follow(study);
      Ranking fresh;
      fresh.follow(study);
      ASSERT_EQ(kept.order(), by_definition(study)) << objectives << " objectives, trial " << i;
      ASSERT_EQ(fresh.order(), kept.order());
    }
  }
}

}  // namespace
}  // namespace sinew::tune
