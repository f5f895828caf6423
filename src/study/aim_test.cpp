// Tests the aim of a study with several objectives and constraints: outcomes, the event log, the best trials, the
// summary.
#include "study/aim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/exit_code.h"
#include "base/random.h"
#include "study/record_file.h"
#include "study/scheduler.h"
#include "study/text.h"

namespace sinew::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSpace = R"([{"name":"x","type":"float","low":0,"high":1}])";

StudyAim aim() {
  return {{{"val/loss", true}, {"val/accuracy", false}}, {{"val/accuracy", true, 0.5}, {"cost/size", false, 3}}};
}

TEST(StudyAim, AnOutcomeIsWhatWasMeasured) {
  EXPECT_THAT(metrics_of(aim()), ElementsAre("val/loss", "val/accuracy", "cost/size"));
  const Outcome good = outcome_of(aim(), {2, 0.75, 3});
  EXPECT_THAT(good.values, ElementsAre(2, 0.75));
  EXPECT_THAT(good.constraints, ElementsAre(-0.25, 0));
  const Outcome bad = outcome_of(aim(), {2, 0.25, std::nan("")});
  EXPECT_EQ(bad.constraints[0], 0.25);
  EXPECT_TRUE(std::isnan(bad.constraints[1])) << "never measured, so not known to be satisfied";
}

TEST(StudyAim, IsInTheFirstLineOfTheEventLog) {
  const std::string path = testing::TempDir() + "aim_study.jsonl";
  system_disk().remove_all(path);
  const StudyHead head{"", {}, "auto", "none", aim(), 12, 0};
  RecordFile(system_disk(), path, head);
  const StudyHead read = read_study_head(system_disk(), path);
  EXPECT_EQ(read.aim.objectives, head.aim.objectives);
  EXPECT_EQ(read.aim.constraints, head.aim.constraints);
  EXPECT_EQ(aim_text(read.aim), "minimise val/loss, maximise val/accuracy with val/accuracy >= 0.5, cost/size <= 3");
}

// For random outcomes, the scheduler reports for each ended trial whether it is on the Pareto front.
TEST(StudyAim, TheBestTrialsAreTheParetoFront) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(random_key({seed}));
    std::vector<StudyEvent> record;
    const StudyHead head{"", {}, "tpe", "none", aim(), 30, 0};
    SchedulerOptions options{study_options(head, tune::read_space(kSpace), 7)};
    options.sampler = head.sampler;
    options.pruner = head.pruner;
    options.trials = 30;
    options.record = [&](const StudyEvent& event) { record.push_back(event); };
    TrialScheduler scheduler(options);
    while (const auto start = scheduler.next()) {
      const double x = scheduler.study().trial(start->id).point[0];
      const Outcome outcome = outcome_of(aim(), {x, x + 0.2 * random.uniform(), 4 * random.uniform()});
      const TrialEnd over = scheduler.end(start->id, {kDone, 0}, outcome);
      EXPECT_EQ(over.best, testing::Matches(testing::Contains(start->id))(scheduler.best()));
    }
    ASSERT_EQ(scheduler.study().observed().size(), 30U);
    EXPECT_GT(scheduler.best().size(), 1U);
    for (const int64_t id : scheduler.best()) EXPECT_EQ(tune::Study::violation(scheduler.study().trial(id)), 0);
    TrialScheduler again(options, record);
    EXPECT_EQ(again.best(), scheduler.best()) << "the record holds the constraints too";
  }
}

TEST(StudySummary, NamesViolatedConstraints) {
  const StudyHead head{"", {}, "tpe", "none", {{{"val/loss", true}}, aim().constraints}, 30, 0};
  tune::Study study(study_options(head, tune::read_space(kSpace), 7));
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("no trial is complete yet"));
  study.tell(study.start({{0.7}, "test", "", {}}), tune::TrialState::complete, {std::nan("")}, {0, 0});
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("no trial measured every metric of the search"));
  study.tell(study.start({{0.5}, "test", "", {}}), tune::TrialState::complete, {2}, {0.25, -1});
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("no trial meets the constraints"));
  EXPECT_THAT(study_summary("runs/x", study, head),
              HasSubstr("best val/loss 2; violates val/accuracy >= 0.5 by 0.25  trial 1"));
  study.tell(study.start({{0.25}, "test", "", {}}), tune::TrialState::complete, {3}, {0, -1});
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("best val/loss 3  trial 2"));
}

TEST(StudySummary, TheCommandIsQuotedForAShell) {
  const StudyHead head{"", {"data.train.path=a b.csv"}, "tpe", "none", {{{"val/loss", true}}, {}}, 30, 0};
  tune::Study study(
      study_options(head, tune::read_space(R"([{"name":"model.hidden","type":"cat","choices":["[8]","[16]"]}])"), 7));
  study.tell(study.start({{0}, "test", "", {}}), tune::TrialState::complete, {2}, {});
  EXPECT_THAT(
      study_summary("runs/my x", study, head),
      HasSubstr("to train it again: sinew train 'runs/my x/job.yaml' 'data.train.path=a b.csv' 'model.hidden=[8]'\n"));
}

}  // namespace
}  // namespace sinew::study
