// Tests that a deterministic study does not depend on timing: on the number of slots, on how long trials take, or on
// deaths of trials and leaders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/random.h"
#include "study/scheduler.h"

namespace sinew::study {
namespace {

constexpr int64_t kEvaluations = 6, kTrials = 40, kLag = 8;

tune::Space space() {
  return tune::read_space(R"([{"name":"lr","type":"float","low":1e-5,"high":1,"log":true},
    {"name":"opt","type":"cat","choices":["sgd","adam"]},
    {"name":"momentum","type":"float","low":0,"high":1,"if":{"opt":["sgd"]}}])");
}

double loss(const tune::Point& point, int64_t evaluation) {
  const double rate = std::log10(point[0]) + 2, momentum = std::isnan(point[2]) ? 0.3 : point[2] - 0.5;
  return rate * rate + momentum * momentum + 2.0 / static_cast<double>(evaluation);
}

struct Timing {
  std::string sampler;
  int64_t slots;
  uint64_t seed;        // draws which trial evaluates next and which process dies
  double deaths = 0;    // probability that a trial dies at an evaluation
  double restarts = 0;  // probability that the leader dies
};

// Runs a study with one timing. Returns its trials and their outcomes as text.
std::string run_with(const Timing& timing, tune::StudyOptions study) {
  std::vector<StudyEvent> events;
  RandomStream random(random_key({timing.seed}));
  SchedulerOptions options{std::move(study)};
  options.sampler = timing.sampler;
  options.max_resource = kEvaluations;
  options.trials = kTrials;
  options.slots = timing.slots;
  options.lag = kLag;
  options.max_deaths = 1000;
  options.record = [&](const StudyEvent& event) { events.push_back(event); };
  auto scheduler = std::make_unique<TrialScheduler>(options);
  for (int turn = 0; turn < 100'000; ++turn) {
    while (scheduler->next()) {
    }
    if (scheduler->over()) break;
    if (random.uniform() < timing.restarts) {
      scheduler = std::make_unique<TrialScheduler>(options, events);
      continue;
    }
    const auto running = scheduler->running();
    const int64_t id = running[random.below(running.size())];
    const tune::Trial& trial = scheduler->study().trial(id);
    if (random.uniform() < timing.deaths) {
      scheduler->end(id, {0, SIGKILL}, {});
      continue;
    }
    // Some trials train on for a while after the study asked them to end.
    std::string why;
    bool asked = false;
    auto evaluation = static_cast<int64_t>(trial.reports.size());
    do {
      ++evaluation;
      asked |= scheduler->report(id, static_cast<double>(evaluation), loss(trial.point, evaluation), why);
    } while (evaluation < kEvaluations && random.uniform() < 0.6);
    if (evaluation == kEvaluations)
      scheduler->end(id, {kDone, 0}, Outcome{{loss(trial.point, evaluation)}});
    else if (asked)
      scheduler->end(id, {kResumable, 0}, {});
  }
  std::string text;
  for (const tune::Trial& trial : scheduler->study().trials()) {
    text += tune::write_point(scheduler->study().space(), trial.point) + " " +
            std::to_string(static_cast<int>(trial.state)) + " " + trial.why;
    for (const double value : trial.values) text += " " + std::to_string(value);
    text += "\n";
  }
  return text;
}

tune::StudyOptions study_of_seed(uint64_t seed) {
  return {space(), {tune::Direction::minimize}, seed, kTrials, {}};
}

class DeterministicStudy : public testing::TestWithParam<const char*> {};

TEST_P(DeterministicStudy, TheStudyDoesNotDependOnTiming) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string calm = run_with({GetParam(), 1, 1}, study_of_seed(seed));
    EXPECT_EQ(std::ranges::count(calm, '\n'), kTrials);
    EXPECT_EQ(run_with({GetParam(), 2, 2 + seed}, study_of_seed(seed)), calm);
    EXPECT_EQ(run_with({GetParam(), 8, 3 + seed}, study_of_seed(seed)), calm);
    EXPECT_EQ(run_with({GetParam(), 64, 4 + seed}, study_of_seed(seed)), calm) << "more slots than the lag";
    EXPECT_EQ(run_with({GetParam(), 8, 5 + seed, 0.1}, study_of_seed(seed)), calm) << "trials die";
    EXPECT_EQ(run_with({GetParam(), 3, 6 + seed, 0.05, 0.05}, study_of_seed(seed)), calm) << "trials and leaders die";
  }
}

TEST_P(DeterministicStudy, AnotherSeedIsAnotherStudy) {
  EXPECT_NE(run_with({GetParam(), 2, 1}, study_of_seed(1)), run_with({GetParam(), 2, 1}, study_of_seed(2)));
}

INSTANTIATE_TEST_SUITE_P(Samplers, DeterministicStudy, testing::Values("auto", "tpe"));

TEST(DeterministicStudies, PrunesTrialsWorseThanTheMedian) {
  const std::string text = run_with({"tpe", 4, 9}, study_of_seed(4));
  const std::string pruned = " " + std::to_string(static_cast<int>(tune::TrialState::pruned)) + " ";
  EXPECT_NE(text.find(pruned), std::string::npos);
}

TEST(DeterministicStudies, RefusesPrunersThatPauseTrials) {
  for (const char* name : {"asha", "hyperband", "curve"}) {
    SchedulerOptions options{study_of_seed(1)};
    options.lag = 2;
    options.pruner = name;
    options.max_resource = 9;
    try {
      TrialScheduler scheduler(options);
      FAIL() << name;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.code, ErrorCode("TUNE_PRUNER_NOT_DETERMINISTIC"));
    }
  }
}

}  // namespace
}  // namespace sinew::study
