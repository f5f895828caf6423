// Tests what a run says about what it has spent, while it trains and at its end.
#include <gtest/gtest.h>

#include <filesystem>

#include "rundir/rundir.h"
#include "train/small_run.h"

namespace sinew::train {
namespace {

class RunAccountsTest : public SmallRun {
 protected:
  rundir::Outcome report() const {
    return rundir::parse_outcome(rundir::report_text(system_disk(), run_directory_)).value_or(rundir::Outcome());
  }
  std::string accounts_file() const { return rundir::file_in(run_directory_, rundir::kAccountsFile); }
};

TEST_F(RunAccountsTest, TheReportHasTheLayersAndTheWorkOfTheAttempt) {
  job_.trainer.max_duration = {2, spec::Duration::Unit::epochs};
  ASSERT_EQ(run_in("run").exit_code, 0);
  const rundir::Outcome first = report();
  ASSERT_TRUE(first.model);
  constexpr double n = 16;  // samples of a step; two inputs, four hidden units, two classes
  EXPECT_EQ(first.model->flops_per_step, 2 * (2 * 2 * 4 * n) + 3 * (2 * 4 * 2 * n));
  EXPECT_EQ(first.model->steps, first.steps);
  EXPECT_NEAR(first.model->flops, first.model->flops_per_step * static_cast<double>(first.samples) / n, 1);
  EXPECT_EQ(first.model->gradient_bytes, first.memory->parameters);
  ASSERT_TRUE(first.resources);
  EXPECT_GT(first.resources->seconds, 0);
  EXPECT_EQ(first.resources->network, NetworkUse()) << "the worker was alone";
  EXPECT_FALSE(std::filesystem::exists(accounts_file()));
}

TEST_F(RunAccountsTest, ARunThatGoesOnCountsItsNewStepsOnly) {
  TickingClock clock(1.5);
  ASSERT_NE(run_for(clock).exit_code, 0);
  const int64_t before = report().steps;
  ASSERT_GT(before, 0);
  TickingClock later(1.5);
  run_for(later, /*resume=*/true);
  const rundir::Outcome second = report();
  ASSERT_TRUE(second.model);
  EXPECT_GT(second.steps, before);
  EXPECT_EQ(second.model->steps, second.steps - before);
}

TEST_F(RunAccountsTest, ARunPublishesItsAccountsWhileItTrains) {
  std::vector<rundir::Outcome> seen;
  on_work_ = [&](int, const Work& work) {
    if (work.kind != Work::Kind::updating || !std::filesystem::exists(accounts_file())) return;
    std::string why;
    const auto accounts = rundir::parse_accounts(read_text(system_disk(), accounts_file()), &why);
    ASSERT_TRUE(accounts) << why;
    if (seen.empty() || seen.back().steps != accounts->steps) seen.push_back(*accounts);
  };
  TickingClock clock(30);
  run_for(clock);
  ASSERT_GE(seen.size(), 2U) << "they were not renewed";
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].status, rundir::kRunning);
    ASSERT_TRUE(seen[i].time && seen[i].resources && seen[i].memory && seen[i].model);
    EXPECT_EQ(seen[i].samples, 16 * seen[i].steps);
    EXPECT_EQ(seen[i].model->steps, seen[i].steps);
    if (i > 0) {
      EXPECT_GE(seen[i].time->total(), seen[i - 1].time->total());
      EXPECT_GE(seen[i].resources->cpu_seconds, seen[i - 1].resources->cpu_seconds);
    }
  }
  EXPECT_GE(report().time->total(), seen.back().time->total());
  EXPECT_FALSE(std::filesystem::exists(accounts_file())) << "the report has it all";
}

// Accounts are never worth a run.
TEST_F(RunAccountsTest, ADiskThatRefusesTheAccountsDoesNotDisturbTheRun) {
  std::filesystem::create_directories(accounts_file() + "/in the way");
  TickingClock clock(10);
  run_for(clock);
  EXPECT_EQ(report().status, "stopped");
}

}  // namespace
}  // namespace sinew::train
