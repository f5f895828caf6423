// Tests that all leaders make the same decisions from the same event log.
#include "study/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "study/testing.h"

namespace sinew::study {
namespace {

using tune::TrialState;

TEST(TrialScheduler, EveryTrialEndsOnceOrStaysPaused) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<StudyEvent> record;
    TrialScheduler scheduler(sample_options(record), {});
    SampleTrainings trainings;
    RandomStream random(random_key({seed}));
    run_study(scheduler, trainings, random, 2000, seed % 2 == 0 ? 0 : 0.2);
    EXPECT_TRUE(scheduler.over());
    EXPECT_EQ(scheduler.study().next_id(), 12);
    ASSERT_FALSE(scheduler.best().empty());
    std::map<int64_t, int> ends;
    for (const StudyEvent& event : record) ends[event.id] += event.kind == StudyEvent::Kind::end;
    for (const tune::Trial& trial : scheduler.study().trials()) {
      EXPECT_NE(trial.state, TrialState::running);
      EXPECT_EQ(ends[trial.id], trial.state == TrialState::paused ? 0 : 1);
    }
  }
}

// Whenever a leader dies, another leader that reads the event log suggests the same trial.
TEST(TrialScheduler, ContinuesFromTheEventLogAlone) {
  std::vector<StudyEvent> record;
  TrialScheduler scheduler(sample_options(record), {});
  SampleTrainings trainings;
  RandomStream random(random_key({3}));
  run_study(scheduler, trainings, random, 2000, 0);
  const tune::Space space = sample_space();
  for (size_t cut = 0; cut < record.size(); ++cut) {
    if (record[cut].kind != StudyEvent::Kind::start) continue;
    std::vector<StudyEvent> more;
    TrialScheduler again(sample_options(more, 100),
                         {record.begin(), record.begin() + static_cast<std::ptrdiff_t>(cut)});
    while (more.empty() || more.back().kind != StudyEvent::Kind::start) ASSERT_TRUE(again.next());
    EXPECT_TRUE(tune::same_point(more.back().suggestion.point, record[cut].suggestion.point)) << cut;
    EXPECT_EQ(more.back().suggestion.why, record[cut].suggestion.why);
  }
}

// Several leaders that share one event log. Each leader observes what the others recorded before it decides. If a
// leader is killed, another takes over its trials. A new leader may join at any time.
struct Leaders {
  struct Leader {
    std::string name;
    size_t observed = 0;  // the number of events that this leader has observed
    std::unique_ptr<TrialScheduler> scheduler;
  };
  std::vector<StudyEvent> record;
  std::vector<Leader> alive;
  int64_t names = 0;

  void join(const std::optional<int64_t>& lag) {
    auto of = sample_options(record);
    of.lag = lag;
    if (lag) of.pruner = "median";
    of.leader = "p" + std::to_string(names++);
    of.abandoned = [this](const std::string& name, int64_t) {
      return std::ranges::find(alive, name, &Leader::name) == alive.end();
    };
    const std::string name = of.leader;
    alive.push_back({name, record.size(), std::make_unique<TrialScheduler>(of, record)});
  }

  void start_trials(Leader& leader) {
    for (; leader.observed < record.size(); ++leader.observed) leader.scheduler->observe(record[leader.observed]);
    while (leader.scheduler->next()) {
    }
  }
};

TEST(TrialScheduler, SeveralLeadersShareAStudyAndAnyOfThemMayDie) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Leaders leaders;
    leaders.record.reserve(10'000);  // events must not move while leaders read them
    SampleTrainings trainings;
    RandomStream random(random_key({77, seed}));
    leaders.join({});
    for (int64_t turn = 0;; ++turn) {
      ASSERT_LT(turn, 5000) << "the study does not end";
      if (leaders.alive.size() < 3 && random.uniform() < 0.1) leaders.join({});
      if (leaders.alive.size() > 1 && random.uniform() < 0.03)
        leaders.alive.erase(leaders.alive.begin() + static_cast<std::ptrdiff_t>(random.below(leaders.alive.size())));
      auto& leader = leaders.alive[random.below(leaders.alive.size())];
      leaders.start_trials(leader);
      std::map<int64_t, int> runners;
      for (const auto& other : leaders.alive)
        for (const int64_t id : other.scheduler->running())
          EXPECT_EQ(++runners[id], 1) << "trial " << id << " runs twice";
      const auto running = leader.scheduler->running();
      if (!running.empty()) {
        const int64_t id = running[random.below(running.size())], evaluation = ++trainings.evaluations[id];
        const double loss = trainings.loss(leader.scheduler->study(), id, evaluation);
        std::string why;
        if (leader.scheduler->report(id, static_cast<double>(evaluation), loss, why)) {
          leader.scheduler->end(id, {kResumable, 0}, {});
        } else if (evaluation >= 9) {
          leader.scheduler->end(id, {kDone, 0}, Outcome{{loss}});
        }
      }
      leader.observed = leaders.record.size();  // a leader has observed the events that it recorded itself
      if (leader.scheduler->over()) break;
    }
    // The event log holds the whole study, and each trial ends once.
    TrialScheduler after(sample_options(leaders.record), leaders.record);
    EXPECT_FALSE(after.best().empty());
    EXPECT_EQ(after.study().next_id(), 12);
    std::map<int64_t, int> ends;
    for (const StudyEvent& event : leaders.record) ends[event.id] += event.kind == StudyEvent::Kind::end;
    for (const tune::Trial& trial : after.study().trials()) {
      EXPECT_NE(trial.state, TrialState::running);
      EXPECT_EQ(ends[trial.id], trial.state == TrialState::paused ? 0 : 1);
    }
  }
}

TEST(TrialScheduler, AllLeadersContinueAnExtendedStudy) {
  Leaders leaders;
  leaders.join({});
  leaders.join({});
  leaders.record.push_back({.kind = StudyEvent::Kind::extend, .trials = 40});
  leaders.start_trials(leaders.alive[0]);
  leaders.start_trials(leaders.alive[1]);
  EXPECT_EQ(leaders.alive[0].scheduler->running().size() + leaders.alive[1].scheduler->running().size(), 4U);
  EXPECT_FALSE(leaders.alive[0].scheduler->over());
}

TEST(TrialScheduler, ATrialFailsAfterThreeDeathsInARow) {
  std::vector<StudyEvent> record;
  TrialScheduler scheduler(sample_options(record, 1), {});
  const auto first = scheduler.next();
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->continues);
  for (int death = 0; death < 2; ++death) {
    EXPECT_TRUE(scheduler.end(0, {0, SIGKILL}, {}).resumable);
    EXPECT_TRUE(scheduler.next()->continues);
  }
  std::string why;
  scheduler.report(0, 1, 0.5, why);  // an evaluation resets the count of deaths
  EXPECT_TRUE(scheduler.end(0, {0, SIGSEGV}, {}).resumable);
  EXPECT_TRUE(scheduler.next()->continues);
  EXPECT_TRUE(scheduler.end(0, {0, SIGSEGV}, {}).resumable);
  EXPECT_TRUE(scheduler.next()->continues);
  EXPECT_FALSE(scheduler.end(0, {0, SIGSEGV}, {}).resumable);
  EXPECT_EQ(scheduler.study().trial(0).state, TrialState::failed);
  scheduler.next();
  EXPECT_FALSE(scheduler.end(1, {kTrainingError, 0}, {}).resumable) << "an error of the training would only come again";
  EXPECT_EQ(scheduler.study().trial(1).state, TrialState::failed);
}

TEST(TrialScheduler, AStepIsReportedOnce) {
  std::vector<StudyEvent> record;
  TrialScheduler scheduler(sample_options(record, 1), {});
  scheduler.next();
  std::string why;
  scheduler.report(0, 1, 0.5, why);
  scheduler.report(0, 1, 0.5, why);
  EXPECT_EQ(scheduler.study().trial(0).reports.size(), 1U);
}

TEST(TrialScheduler, APrunerWithRungsNeedsTheNumberOfEvaluations) {
  std::vector<StudyEvent> record;
  for (const auto& [pruner, valid] : {std::pair{"asha", false}, {"curve", false}, {"median", true}, {"auto", true}}) {
    auto of = sample_options(record);
    of.pruner = pruner;
    of.max_resource = 0;
    if (valid) {
      EXPECT_NO_THROW(TrialScheduler(of, {})) << pruner;
    } else {
      try {
        TrialScheduler(of, {});
        FAIL() << pruner;
      } catch (const UsageError& error) {
        EXPECT_EQ(error.code, ErrorCode("TUNE_EVALUATIONS_UNKNOWN"));
      }
    }
  }
}

// The job file accepts exactly the names that the code in tune/ defines.
TEST(TrialScheduler, TheJobFileAcceptsEverySamplerAndPruner) {
  const auto choices_of = [](const std::string& key) {
    for (const spec::OptionInfo& option : spec::options()) {
      if (option.key == key) return option.choices;
    }
    return std::vector<std::string>();
  };
  std::vector<std::string> samplers, pruners;
  for (const auto& maker : tune::samplers()) samplers.emplace_back(maker.name);
  for (const auto& maker : tune::pruners()) pruners.emplace_back(maker.name);
  EXPECT_THAT(choices_of("tune.sampler"), testing::UnorderedElementsAreArray(samplers));
  EXPECT_THAT(choices_of("tune.pruner"), testing::UnorderedElementsAreArray(pruners));
}

TEST(Evaluations, AreCountedFromTheJob) {
  spec::Job job;
  EXPECT_EQ(evaluations_of(job), 10);
  job.trainer.eval_interval = {100, spec::Duration::Unit::steps};
  EXPECT_EQ(evaluations_of(job), 0) << "the steps of ten epochs depend on the data";
  job.trainer.max_duration = {950, spec::Duration::Unit::steps};
  EXPECT_EQ(evaluations_of(job), 9);
  job.trainer.eval_interval = {0.1, spec::Duration::Unit::fraction};
  EXPECT_EQ(evaluations_of(job), 10);
}

}  // namespace
}  // namespace sinew::study
