// Tests what the progress lines of a run say: the time that is left, and the last step.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/hand_clock.h"
#include "loop/number_trainer.h"

namespace sinew::loop {
namespace {

class ShownProgress : public testing::Test {
 protected:
  ShownProgress() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-show-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    plan_.job.name = "show";
    plan_.job.trainer.max_duration = {20, spec::Duration::Unit::steps};
    plan_.job.trainer.batch_size = 1;
    plan_.job.trainer.eval_interval = {1e6, spec::Duration::Unit::steps};
    plan_.job.logging.tensorboard = false;
    plan_.job.logging.interval = {5, spec::Duration::Unit::steps};
    plan_.resolved_yaml = "name: show\n";
    plan_.data.train_size = 100;
    plan_.model = "numbers";
  }
  ~ShownProgress() override { std::filesystem::remove_all(folder_); }

  // Trains. Stops with the step `stops_at`. Returns the progress lines.
  std::vector<std::string> lines(double seconds_per_step, bool resume = false, int64_t stops_at = -1) {
    NumberTrainer trainer;
    std::atomic<int> stops{0};
    trainer.before_step = [&](int64_t step) {
      clock_.seconds = clock_.seconds + seconds_per_step;
      if (step == stops_at) stops = 1;
    };
    std::string shown;
    RunOptions options{.run_directory = folder_, .resume = resume};
    options.screen.output = [&](std::string_view text) { shown += text; };
    options.screen.errors = [](std::string_view) {};
    options.screen.plain_interval_seconds = 0;
    options.stop_signals = &stops;
    options.in_background = [](const std::function<void()>& work) { work(); };
    WriteFence disk(system_disk(), folder_, WriteFence::free_number(system_disk(), folder_));
    result_ = run(plan_, options, trainer, nullptr, disk, clock_);
    std::vector<std::string> found;
    std::istringstream all(shown);
    for (std::string line; std::getline(all, line);) {
      if (line.starts_with("step ") && line.find(':') == line.npos) found.push_back(line);
    }
    return found;
  }
  static bool has_eta(const std::string& line) { return line.find("eta ") != line.npos; }

  std::string folder_;
  Plan plan_;
  HandClock clock_;
  RunResult result_;
};

TEST_F(ShownProgress, TheTimeThatIsLeftIsToldOnceTwoStepsAreMeasuredAndUntilTheLast) {
  std::vector<std::string> shown = lines(1, false, 9);
  EXPECT_EQ(result_.exit_code, kResumable);
  for (const int64_t steps : {11, 9}) {  // the attempt that is stopped after step 11, and the one that goes on
    ASSERT_EQ(shown.size(), static_cast<size_t>(steps));
    EXPECT_FALSE(has_eta(shown[0])) << shown[0];
    for (size_t i = 1; i < 9; ++i) EXPECT_EQ(has_eta(shown[i]), steps == 11 || i < 8) << shown[i];
    if (steps == 11) shown = lines(1, true);
  }
  EXPECT_EQ(result_.exit_code, 0);
  EXPECT_TRUE(shown.back().starts_with("step 20/20")) << shown.back();
}

TEST_F(ShownProgress, TheLastLineShowsTheStepAtWhichTheRunStopped) {
  const std::vector<std::string> shown = lines(0.001, false, 12);
  ASSERT_EQ(result_.step, Step(14));
  EXPECT_TRUE(shown.back().starts_with("step 14/20")) << shown.back();
  EXPECT_EQ(shown.size(), 2U) << "the other steps come too fast";
}

TEST_F(ShownProgress, ALineHasMetricsAlsoAfterTheyWereLogged) {
  for (const std::string& line : lines(1)) EXPECT_NE(line.find("train/loss"), line.npos) << line;
}

TEST_F(ShownProgress, TheBestMetricOfTheEndIsToldOnceItIsKnown) {
  plan_.job.trainer.eval_interval = {1, spec::Duration::Unit::steps};
  plan_.job.checkpoint.monitor = "val/loss";
  plan_.data.val_size = 10;
  const auto tells = [](const std::string& line) { return line.find("  best val/loss 0.0") != line.npos; };
  const std::vector<std::string> shown = lines(1, false, 12);
  ASSERT_GT(shown.size(), 12U);
  for (size_t i = 0; i < shown.size(); ++i) EXPECT_EQ(tells(shown[i]), i >= 3) << shown[i];
  const std::vector<std::string> rest = lines(1, true);
  for (size_t i = 0; i < rest.size(); ++i)
    EXPECT_EQ(tells(rest[i]), i + 1 < rest.size()) << rest[i] << ": a resumed run knows the earlier evaluations";
  std::ifstream file(folder_ + "/report.json");
  const auto forecasts = nlohmann::json::parse(file).at("forecasts");
  EXPECT_EQ(forecasts.at("metric"), "val/loss");
  EXPECT_EQ(forecasts.at("best"), 0.05);
  ASSERT_EQ(forecasts.at("made").size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const auto& made = forecasts.at("made").at(i);
    EXPECT_EQ(made.at("step"), 5 * (i + 1));
    EXPECT_LE(made.at("low"), 0.05) << made;
    EXPECT_GE(made.at("high"), 0.05) << made;
    if (i < 2) {  // at step 15, the resumed run has not measured a step yet
      EXPECT_GT(made.at("seconds_high"), 19) << made;
    }
  }
}

TEST_F(ShownProgress, WithoutValidationDataATrainingIsNotOverAfterItsFirstEpoch) {
  plan_.job.trainer.eval_interval = {5, spec::Duration::Unit::steps};
  plan_.job.checkpoint.monitor = "train/loss";
  lines(1);
  std::ifstream file(folder_ + "/log.jsonl");
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(log.find("\"evaluation\""), log.npos) << "the training loss is evaluated";
  EXPECT_EQ(log.find("none_better"), log.npos) << log;
}

TEST_F(ShownProgress, TheLastStepIsShownOnce) {
  const std::vector<std::string> shown = lines(1);
  EXPECT_EQ(shown.size(), 20U);
  EXPECT_TRUE(lines(1, true).empty()) << "nothing is left to train";
}

}  // namespace
}  // namespace sinew::loop
