#include "study/folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "report/report.h"
#include "study/directory.h"
#include "study/search_space.h"

namespace sinew::study {
namespace {

constexpr const char* kJob =
    "name: cv\ndata: {train: x, split: {folds: 3}}\ntune: {trials: 7, search: {optimizer.lr: [1, 2]}}\n";

class FoldsTest : public testing::Test {
 protected:
  FoldsTest() {
    study_.directory = testing::TempDir() + "folds-" + std::to_string(::getpid());
    const spec::Job job = spec::read_job(kJob, "job").job;
    overrides_ = overrides_for_folds(job, {"trainer.seed=4", "tune.trials=9", "tune={trials: 8}"});
    const spec::Reading reading = spec::read_job(kJob, "job", overrides_);
    EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems.at(0));
    study_.job = reading.job;
  }
  ~FoldsTest() override { std::filesystem::remove_all(study_.directory); }

  // Writes what the training of a fold leaves.
  void end_fold(int64_t id, double loss, double auc) {
    const std::string own = trial_directory(study_.directory, id);
    std::filesystem::create_directories(own);
    rundir::Outcome outcome;
    outcome.steps = 10;
    outcome.started_wall_seconds = 100 + static_cast<double>(id);
    outcome.seconds = 5;
    outcome.last = {{"train/loss", 3}, {"val/loss", loss}, {"test/loss", loss + 1}};
    if (auc > 0) outcome.last["val/auc"] = auc;
    write_durably(system_disk(), rundir::file_in(own, rundir::kOutcomeFile), rundir::outcome_json(outcome));
    std::string lines = "{\"step\":5,\"samples\":9,\"time\":1,\"val/loss\":9}\n";
    lines += "{\"step\":10,\"samples\":9,\"time\":2,\"val/loss\":" + std::to_string(loss) +
             (auc > 0 ? ",\"val/auc\":" + std::to_string(auc) : "") + "}\n";
    lines += "{\"step\":10,\"samples\":9,\"time\":3,\"test/loss\":" + std::to_string(loss + 1) + "}\n";
    write_durably(system_disk(), rundir::file_in(own, rundir::kMetricsFile), lines);
  }

  tune::Study trials(std::vector<tune::TrialState> states) {
    tune::Study trials({space_of(study_.job.tune), {tune::Direction::minimize}, 0, 3, {}});
    for (size_t i = 0; i < states.size(); ++i) {
      const int64_t id = trials.start({{static_cast<double>(i)}, "grid", "", {}});
      if (states[i] != tune::TrialState::running)
        trials.tell(id, states[i],
                    states[i] == tune::TrialState::complete ? std::vector<double>{0.5} : std::vector<double>());
    }
    return trials;
  }
  rundir::Outcome outcome(const tune::Study& ended) {
    study_.head.aim.objectives = {{"val/loss", true}};
    return outcome_of_folds(system_disk(), study_, ended, TrialResults(study_));
  }

  OpenStudy study_;
  std::vector<std::string> overrides_;
};

TEST_F(FoldsTest, AStudyTrainsEachFoldOnce) {
  EXPECT_TRUE(leads_folds(study_.job));
  EXPECT_EQ(study_.job.tune.trials, 3) << "the search of the job does not apply";
  EXPECT_EQ(study_.job.trainer.seed, 4U);
  EXPECT_EQ(study_.job.tune.search[0].low, 0);
  EXPECT_EQ(study_.job.tune.search[0].high, 2);
  overrides_.push_back("data.split.fold=1");
  const spec::Reading one = spec::read_job(kJob, "job", overrides_);
  ASSERT_TRUE(one.problems.empty());
  EXPECT_FALSE(leads_folds(one.job)) << "a trial is a training of one fold";
  EXPECT_FALSE(leads_folds(spec::read_job(kJob, "job").job)) << "a search over other options";
}

TEST_F(FoldsTest, HaveMeansAndDeviations) {
  end_fold(0, 1, 0.5);
  end_fold(1, 2, 0.75);
  end_fold(2, 6, 0);
  const rundir::Outcome all = outcome(trials(std::vector(3, tune::TrialState::complete)));
  EXPECT_EQ(all.status, "done");
  EXPECT_EQ(all.exit_code, 0);
  ASSERT_EQ(all.folds.size(), 3U);
  EXPECT_EQ(all.folds[1].run, "trials/00001");
  EXPECT_EQ(all.folds[1].metrics.at("val/loss"), 2);
  EXPECT_EQ(all.folds[1].metrics.at("test/loss"), 3);
  EXPECT_EQ(all.last.at("val/loss"), 3);
  EXPECT_NEAR(all.last.at("val/loss_std"), 2.6457513110645907, 1e-12);  // sqrt((4 + 1 + 9) / 2)
  EXPECT_EQ(all.last.at("test/loss"), 4);
  EXPECT_FALSE(all.last.contains("val/auc")) << "one fold has none";
  EXPECT_FALSE(all.last.contains("train/loss"));
  EXPECT_EQ(all.steps, 30);
  EXPECT_EQ(all.started_wall_seconds, 100);
  write_folds(system_disk(), study_.directory, all);
  const auto lines = report::read_metrics(rundir::file_in(study_.directory, rundir::kMetricsFile));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].values.at("val/loss"), 3);
  EXPECT_THAT(folds_summary("d", all), testing::ContainsRegex("val/loss +3.000 +2.646 +1.000 +2.000 +6.000"));
}

TEST_F(FoldsTest, OfWhichOneFailedHaveNoMean) {
  using State = tune::TrialState;
  end_fold(0, 1, 0.5);
  end_fold(2, 2, 0.5);
  const rundir::Outcome failed = outcome(trials({State::complete, State::failed, State::complete}));
  EXPECT_EQ(failed.status, "failed");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.error, testing::HasSubstr("failed: 1"));
  EXPECT_TRUE(failed.last.empty());
  write_folds(system_disk(), study_.directory, failed);
  EXPECT_FALSE(std::filesystem::exists(rundir::file_in(study_.directory, rundir::kMetricsFile)));
  const rundir::Outcome stopped = outcome(trials({State::complete, State::running}));
  EXPECT_EQ(stopped.status, "stopped");
  EXPECT_EQ(stopped.exit_code, 75);
  EXPECT_EQ(stopped.folds[1].status, "stopped");
}

TEST_F(FoldsTest, TheObjectiveIsJudgedByTheMean) {
  for (int64_t id = 0; id < 3; ++id) end_fold(id, 1 + static_cast<double>(id), 0.5);
  study_.job.objective = spec::Objective{"val/loss", false, 2};
  const auto ended = trials(std::vector(3, tune::TrialState::complete));
  EXPECT_TRUE(outcome(ended).objective->met);
  study_.job.objective->value = 1.9;
  EXPECT_FALSE(outcome(ended).objective->met);
}

}  // namespace
}  // namespace sinew::study
