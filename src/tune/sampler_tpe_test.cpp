// Tests TPE in a study whose trials are mostly paused, as with a pruner that has rungs.
#include <gtest/gtest.h>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

Space line() {
  return read_space(R"([{"name":"x","type":"float","low":0,"high":1}])");
}

// The best ended trials are near 0.2 and 0.8. The paused ones are near 0.2 and bad.
Study mostly_waiting(int waiting, int told) {
  Study study({line(), {Direction::minimize}, 3, 0});
  RandomStream random(random_key({8}));
  for (int i = 0; i < told; ++i) {
    const bool good = i < 26;
    const double x = good ? (i % 2 == 0 ? 0.2 : 0.8) + 1e-3 * i : random.uniform();
    study.tell(study.start({{x}, "", "", {}}), TrialState::complete, {good ? 1e-3 * i : 1});
  }
  for (int i = 0; i < waiting; ++i) {
    const int64_t id = study.start({{random.uniform(0.1, 0.3)}, "", "", {}});
    study.report(id, 1, 2);
    study.pause(id);
  }
  return study;
}

TEST(Tpe, WorksInAStudyWhereAlmostAllTrialsArePaused) {
  for (const char* name : {"tpe", "auto"}) {
    for (const int told : {0, 1, 17, 300}) {
      Study study = mostly_waiting(700, told);
      const auto sampler = make_sampler(name);
      for (int i = 0; i < 5; ++i) study.start(suggest_next(study, *sampler));
      EXPECT_EQ(study.next_id(), 705 + told);
    }
  }
}

TEST(Tpe, AvoidsBadPausedTrials) {
  Study study = mostly_waiting(700, 300);
  const auto sampler = make_sampler("tpe");
  int far = 0;
  for (int i = 0; i < 20; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    far += study.trial(id).point[0] > 0.5;
    study.tell(id, TrialState::complete, {1});
  }
  EXPECT_GE(far, 18);
}

}  // namespace
}  // namespace sinew::tune
