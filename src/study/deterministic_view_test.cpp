// A deterministic study is the same whatever the timing: with any number of trials side by side, however long each
// takes, killed and resumed.
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

struct World {
  std::string sampler;
  int64_t places;
  uint64_t timing;      // seed of who is fast and who dies
  double deaths = 0;    // chance of a process dying at an evaluation
  double restarts = 0;  // of the whole study dying
};

// The study of one world, as text: all that was suggested and what came of it.
std::string lived(const World& world, tune::StudyOptions study) {
  std::vector<StudyEvent> events;
  RandomStream random(random_key({world.timing}));
  SchedulerOptions options{std::move(study)};
  options.sampler = world.sampler;
  options.max_resource = kEvaluations;
  options.trials = kTrials;
  options.slots = world.places;
  options.lag = kLag;
  options.max_deaths = 1000;
  options.record = [&](const StudyEvent& event) { events.push_back(event); };
  auto scheduler = std::make_unique<TrialScheduler>(options);
  for (int turn = 0; turn < 100'000; ++turn) {
    while (scheduler->next()) {
    }
    if (scheduler->over()) break;
    if (random.uniform() < world.restarts) {
      scheduler = std::make_unique<TrialScheduler>(options, events);
      continue;
    }
    const auto running = scheduler->running();
    const int64_t id = running[random.below(running.size())];
    const tune::Trial& trial = scheduler->study().trial(id);
    if (random.uniform() < world.deaths) {
      scheduler->end(id, {0, SIGKILL}, {});
      continue;
    }
    // Some go on for a while after they were asked to end.
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

class InOrder : public testing::TestWithParam<const char*> {};

TEST_P(InOrder, TheStudyIsTheSameWhateverTheTiming) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string calm = lived({GetParam(), 1, 1}, study_of_seed(seed));
    EXPECT_EQ(std::ranges::count(calm, '\n'), kTrials);
    EXPECT_EQ(lived({GetParam(), 2, 2 + seed}, study_of_seed(seed)), calm);
    EXPECT_EQ(lived({GetParam(), 8, 3 + seed}, study_of_seed(seed)), calm);
    EXPECT_EQ(lived({GetParam(), 64, 4 + seed}, study_of_seed(seed)), calm) << "more places than the lag";
    EXPECT_EQ(lived({GetParam(), 8, 5 + seed, 0.1}, study_of_seed(seed)), calm) << "trials die";
    EXPECT_EQ(lived({GetParam(), 3, 6 + seed, 0.05, 0.05}, study_of_seed(seed)), calm) << "and the study";
  }
}

TEST_P(InOrder, AnotherSeedIsAnotherStudy) {
  EXPECT_NE(lived({GetParam(), 2, 1}, study_of_seed(1)), lived({GetParam(), 2, 1}, study_of_seed(2)));
}

INSTANTIATE_TEST_SUITE_P(Samplers, InOrder, testing::Values("auto", "tpe"));

TEST(InOrderStudy, StopsWhatIsWorseThanTheMedian) {
  const std::string text = lived({"tpe", 4, 9}, study_of_seed(4));
  const std::string stopped = " " + std::to_string(static_cast<int>(tune::TrialState::pruned)) + " ";
  EXPECT_NE(text.find(stopped), std::string::npos);
}

TEST(InOrderStudy, RefusesStoppersThatWaitForOthers) {
  for (const char* name : {"asha", "hyperband", "curve"}) {
    SchedulerOptions options{study_of_seed(1)};
    options.lag = 2;
    options.pruner = name;
    options.max_resource = 9;
    EXPECT_THROW(TrialScheduler{options}, Error) << name;
  }
}

}  // namespace
}  // namespace sinew::study
