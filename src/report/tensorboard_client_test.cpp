// Compares Sinew's event files with what the real tensorboard package reads (tests/clients/tensorboard_check.py). Runs
// only if SINEW_PYTHON names a Python that has the package.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/disk.h"
#include "report/report.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

using namespace testing;

class TensorboardClient : public ::testing::Test {
 protected:
  void SetUp() override {
    python_ = std::getenv("SINEW_PYTHON");
    if (python_ == nullptr) GTEST_SKIP() << "SINEW_PYTHON is not set to a Python with tensorboard";
  }
  // Reports the steps `from` to `to` as one attempt of a run. If `resumed_at` is set, the attempt resumes at this step.
  void train(int64_t from, int64_t to, std::optional<Step> resumed_at, std::optional<bool> finished) {
    ReporterOptions options;
    options.directory = directory_.path;
    options.resumed_at = resumed_at;
    options.output = options.errors = [](std::string_view) {};
    Reporter reporter(options, system_disk(), clock_);
    reporter.hparams({{"optimizer.lr", "0.001"}, {"model.name", "cnn"}, {"data.shuffle", "true"}});
    for (int64_t step = from; step <= to; ++step) {
      clock_.now += 0.25;
      Metrics values = {{"train/loss", 1.0 / static_cast<double>(step + from)}, {"time/step_ms", 0.1}};
      if (step % 5 == 0) values["val/accuracy"] = static_cast<double>(step) / 100;
      if (step % 7 == 0) values["val/loss"] = std::numeric_limits<double>::quiet_NaN();
      if (step % 11 == 0) values["val/perplexity"] = std::numeric_limits<double>::infinity();
      reporter.metrics(Step(step), step * 64, values);
    }
    if (finished) reporter.finish(*finished);
  }
  // Returns whether the package agrees, and what it printed.
  std::pair<bool, std::string> check(const std::string& words) {
    const std::string command = std::string(python_) + " " + SINEW_SOURCE_DIR +
                                "/tests/clients/tensorboard_check.py '" + directory_.path + "' " + words + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    char piece[4096];
    while (const size_t got = std::fread(piece, 1, sizeof piece, pipe)) text.append(piece, got);
    return {::pclose(pipe) == 0, text};
  }

  const char* python_ = nullptr;
  TemporaryDirectory directory_;
  FakeClock clock_;
  const std::string hparams_ = "--hparam optimizer.lr=0.001 --hparam model.name=cnn --hparam data.shuffle=true ";
};

TEST_F(TensorboardClient, SeesTheMetricsOfARunThatWasKilledAndResumedTwice) {
  train(1, 20, std::nullopt, std::nullopt);
  train(13, 25, Step(12), std::nullopt);
  train(26, 60, Step(25), true);
  const auto [agrees, said] = check(hparams_ + "--status SUCCESS");
  EXPECT_TRUE(agrees) << said;
  EXPECT_NE(said.find("5 tags, 145 points, 0 differences"), std::string::npos) << said;
}

TEST_F(TensorboardClient, SeesAFailure) {
  train(1, 30, std::nullopt, false);
  const auto [agrees, said] = check(hparams_ + "--status FAILURE");
  EXPECT_TRUE(agrees) << said;
}

// Shows that the check can fail.
TEST_F(TensorboardClient, TheCheckDetectsADifference) {
  train(1, 30, std::nullopt, true);
  EXPECT_FALSE(check(hparams_ + "--status FAILURE").first);
  EXPECT_FALSE(check("--hparam optimizer.lr=0.002").first);
  std::ofstream(directory_ / "metrics.jsonl", std::ios::app)
      << "{\"step\":31,\"samples\":1,\"time\":1,\"train/loss\":1}\n";
  const auto [agrees, said] = check("");
  EXPECT_FALSE(agrees);
  EXPECT_NE(said.find("train/loss has other steps: [31]"), std::string::npos) << said;
}

}  // namespace
}  // namespace sinew::report
