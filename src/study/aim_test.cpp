// What a study searches for: several metrics and constraints, from what a training measured to the trials that are
// kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/exit_code.h"
#include "base/random.h"
#include "study/scheduler.h"
#include "study/text.h"
#include "study/trial_metrics.h"

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
  EXPECT_TRUE(std::isnan(bad.constraints[1])) << "never measured: nobody may say that it is met";
}

TEST(StudyAim, StandsInTheStudysFirstLine) {
  const std::string path = testing::TempDir() + "aim_study.jsonl";
  system_disk().remove_all(path);
  const StudyHead head{"", {}, "auto", "none", aim(), 12, 0};
  StudyFile(system_disk(), path, head);
  const StudyHead read = read_study_head(system_disk(), path);
  EXPECT_EQ(read.aim.objectives, head.aim.objectives);
  EXPECT_EQ(read.aim.constraints, head.aim.constraints);
  EXPECT_EQ(aim_text(read.aim), "minimise val/loss, maximise val/accuracy with val/accuracy >= 0.5, cost/size <= 3");
}

TEST(TrialMetrics, EveryMetricIsKnownAsOfEachEvaluation) {
  const std::string path = testing::TempDir() + "trial_metrics.jsonl";
  Disk& disk = system_disk();
  write_durably(disk, path, "{\"step\":1,\"cost/size\":7}\n{\"step\":2,\"val/loss\":3,\"val/accuracy\":0.5}\n{\"st");
  TrialMetrics metrics(disk, path, metrics_of(aim()));
  ASSERT_EQ(metrics.next().size(), 1U);
  EXPECT_THAT(metrics.at(1), ElementsAre(3, 0.5, 7));
  disk.append(path)->write(std::as_bytes(std::span(
      std::string_view("ep\":3,\"val/accuracy\":0.6}\n{\"step\":4,\"val/loss\":2}\n{\"step\":5,\"cost/size\":8}\n"))));
  const auto fresh = metrics.next();
  ASSERT_EQ(fresh.size(), 1U);
  EXPECT_EQ(fresh[0].number, 2);
  EXPECT_EQ(fresh[0].value, 2);
  EXPECT_THAT(metrics.at(1), ElementsAre(3, 0.5, 7)) << "as it was";
  EXPECT_THAT(metrics.at(2), ElementsAre(2, 0.6, 7));
  EXPECT_THAT(metrics.last(), ElementsAre(2, 0.6, 8));
  write_durably(disk, path, "{\"step\":2,\"val/loss\":4}\n");  // the training went on from before
  ASSERT_EQ(metrics.next().size(), 1U);
  EXPECT_EQ(metrics.count(), 1);
  EXPECT_TRUE(std::isnan(metrics.at(1)[1]));
}

// Whatever the trials come to: what is among the best when it ends is said to be, and nobody's beaten trial is kept.
TEST(StudyAim, TheTrialsThatNoOtherBeatsAreTheBest) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(random_key({seed}));
    std::vector<StudyEvent> record;
    const StudyHead head{"", {}, "tpe", "none", aim(), 30, 0};
    TuningOptions options{study_options(head, tune::read_space(kSpace), 7)};
    options.sampler = head.sampler;
    options.pruner = head.pruner;
    options.trials = 30;
    options.record = [&](const StudyEvent& event) { record.push_back(event); };
    Tuning tuning(options);
    while (const auto start = tuning.next()) {
      const double x = tuning.study().trial(start->id).point[0];
      const Outcome outcome = outcome_of(aim(), {x, x + 0.2 * random.uniform(), 4 * random.uniform()});
      const TrialOver over = tuning.ended(start->id, {kDone, 0}, outcome);
      EXPECT_EQ(over.best, testing::Matches(testing::Contains(start->id))(tuning.best()));
    }
    ASSERT_EQ(tuning.study().observed().size(), 30U);
    EXPECT_GT(tuning.best().size(), 1U);
    for (const int64_t id : tuning.best()) EXPECT_EQ(tune::Study::violation(tuning.study().trial(id)), 0);
    Tuning again(options, record);
    EXPECT_EQ(again.best(), tuning.best()) << "the record holds the constraints too";
  }
}

TEST(StudySummary, SaysWhatIsViolated) {
  const StudyHead head{"", {}, "tpe", "none", {{{"val/loss", true}}, aim().constraints}, 30, 0};
  tune::Study study(study_options(head, tune::read_space(kSpace), 7));
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("no trial came to its end yet"));
  study.tell(study.start({{0.7}, "test", "", {}}), tune::TrialState::complete, {std::nan("")}, {0, 0});
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("no trial measured all that is searched for"));
  study.tell(study.start({{0.5}, "test", "", {}}), tune::TrialState::complete, {2}, {0.25, -1});
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("no trial meets the constraints"));
  EXPECT_THAT(study_summary("runs/x", study, head),
              HasSubstr("best val/loss 2; violates val/accuracy >= 0.5 by 0.25  trial 1"));
  study.tell(study.start({{0.25}, "test", "", {}}), tune::TrialState::complete, {3}, {0, -1});
  EXPECT_THAT(study_summary("runs/x", study, head), HasSubstr("best val/loss 3  trial 2"));
}

}  // namespace
}  // namespace sinew::study
