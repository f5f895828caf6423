// Tests which state each member continues from. This depends only on the values of the generation before, not on
// timing.
#include <gtest/gtest.h>

#include <algorithm>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

constexpr int64_t kPopulation = 10, kGenerations = 5;

Study study_of(uint64_t seed) {
  return Study({.space = mixed_space(), .seed = seed, .budget = kPopulation * kGenerations, .population = kPopulation});
}

double loss_of(const Study& study, int64_t id) {
  const double x = study.space().unit_at(0, study.trial(id).point[0]);
  return (x - 0.3) * (x - 0.3) + 1.0 / static_cast<double>(id / kPopulation + 1);
}

// Runs a study with `slots` parallel trials that end in a random order.
Study run_study(uint64_t seed, size_t slots, uint64_t timing, bool some_fail = false) {
  Study study = study_of(seed);
  const auto sampler = make_sampler("pbt");
  RandomStream random(random_key({timing}));
  std::vector<int64_t> running;
  while (study.observed().size() < kPopulation * kGenerations) {
    while (running.size() < slots && study.next_id() < kPopulation * kGenerations && sampler->ready(study))
      running.push_back(study.start(suggest_next(study, *sampler)));
    const auto ends = running.begin() + static_cast<std::ptrdiff_t>(random.below(running.size()));
    const int64_t id = *ends;
    running.erase(ends);
    if (some_fail && id % 7 == 3)
      study.tell(id, TrialState::failed);
    else
      study.tell(id, TrialState::complete, {loss_of(study, id)});
  }
  return study;
}

TEST(Pbt, EveryMemberContinuesFromTheGenerationBefore) {
  const Study study = run_study(3, 1, 1);
  int copies = 0;
  for (const Trial& trial : study.trials()) {
    EXPECT_EQ(trial.from.has_value(), trial.id >= kPopulation);
    if (!trial.from) continue;
    EXPECT_EQ(*trial.from / kPopulation, trial.id / kPopulation - 1);
    const bool own = *trial.from % kPopulation == trial.id % kPopulation;
    copies += !own;
    EXPECT_EQ(same_point(trial.point, study.trial(*trial.from).point), own) << trial.id;
  }
  EXPECT_EQ(copies, 2 * (kGenerations - 1)) << "a fifth of them after each generation";
}

TEST(Pbt, DoesNotDependOnTiming) {
  for (const bool some_fail : {false, true}) {
    const Study calm = run_study(5, 1, 1, some_fail);
    for (const size_t slots : {2, 3, 10, 64}) {
      const Study other = run_study(5, slots, 7 + slots, some_fail);
      for (const Trial& trial : calm.trials()) {
        EXPECT_TRUE(same_point(trial.point, other.trial(trial.id).point)) << trial.id;
        EXPECT_EQ(trial.from, other.trial(trial.id).from);
      }
    }
  }
}

TEST(Pbt, NoMemberContinuesFromAFailedTrial) {
  const Study study = run_study(9, 4, 2, true);
  for (const Trial& trial : study.trials())
    EXPECT_TRUE(!trial.from || study.trial(*trial.from).state == TrialState::complete) << trial.id;
}

TEST(Pbt, MembersStartAgainIfAllFailed) {
  Study study = study_of(1);
  const auto sampler = make_sampler("pbt");
  for (int64_t id = 0; id < kPopulation; ++id)
    study.tell(study.start(suggest_next(study, *sampler)), TrialState::failed);
  EXPECT_FALSE(suggest_next(study, *sampler).from);
}

// A state is needed exactly while a trial that has yet to start, or to restart, can continue from it.
TEST(Pbt, StatesAreNeededUntilTheNextGenerationHasEnded) {
  Study study = study_of(2);
  const auto sampler = make_sampler("pbt");
  for (int64_t generation = 0; generation < kGenerations; ++generation) {
    for (int64_t member = 0; member < kPopulation; ++member) study.start(suggest_next(study, *sampler));
    EXPECT_FALSE(sampler->ready(study));
    for (int64_t member = 0; member < kPopulation; ++member) {
      const int64_t id = generation * kPopulation + (member * 7 + 3) % kPopulation;
      study.tell(id, TrialState::complete, {loss_of(study, id)});
      EXPECT_EQ(sampler->needs(study, id), generation + 1 < kGenerations);
      for (int64_t before = 0; before < generation * kPopulation; ++before)
        EXPECT_EQ(sampler->needs(study, before), before / kPopulation == generation - 1 && member + 1 < kPopulation);
    }
    EXPECT_TRUE(sampler->ready(study));
  }
}

}  // namespace
}  // namespace sinew::tune
