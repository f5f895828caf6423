// Tests with programs that stand for the worker.
#include "supervise/first_decision.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/exit_code.h"
#include "base/expected_error.h"

namespace sinew::supervise {
namespace {

namespace fs = std::filesystem;

class AskedSignals final : public SignalSource {
 public:
  explicit AskedSignals(std::vector<int> signals = {}) : signals_(std::move(signals)) {}
  int descriptor() const override { return -1; }
  int next() override {
    if (signals_.empty()) return 0;
    const int first = signals_.front();
    signals_.erase(signals_.begin());
    return first;
  }

 private:
  std::vector<int> signals_;
};

class FirstDecision : public ::testing::Test {
 protected:
  FirstDecision() {
    std::string pattern = (fs::temp_directory_path() / "sinew-decision-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    launch_.run_directory = (folder_ / "run").string();
    fs::create_directories(launch_.run_directory);
    launch_.programs.worker = (folder_ / "worker").string();
  }
  ~FirstDecision() override { fs::remove_all(folder_); }

  // The worker is called with its task and the run directory.
  std::optional<int> decided_by(const std::string& script, std::vector<int> signals = {}) {
    std::ofstream(launch_.programs.worker) << "#!/bin/sh\n" << script << '\n';
    fs::permissions(launch_.programs.worker, fs::perms::owner_all);
    AskedSignals asked(std::move(signals));
    return decide_first(launch_, asked);
  }

  fs::path folder_;
  WorkerLaunch launch_;
};

TEST_F(FirstDecision, OnlyAMeasurementIsOneForItself) {
  spec::Job job;
  EXPECT_FALSE(spec::wants_fastest(job));
  job.trainer.precision = "fastest";
  EXPECT_TRUE(spec::wants_fastest(job));
  job.trainer.precision = "fp32";
  job.trainer.memory_format = "fastest";
  EXPECT_TRUE(spec::wants_fastest(job));
}

TEST_F(FirstDecision, TakesThePlaceOfTheOverridesThatLeftItOpen) {
  spec::Job job;
  job.trainer.precision = "fastest";
  std::vector<std::string> overrides = {"trainer.seed=3", "trainer.precision=fastest", "trainer.memory_format=fastest"};
  take_decided(overrides, decided_options(job, "bf16", "contiguous"));
  EXPECT_EQ(overrides,
            (std::vector<std::string>{"trainer.seed=3", "trainer.memory_format=fastest", "trainer.precision=bf16"}));
  EXPECT_TRUE(decided_options(job, "", "contiguous").empty());
}

TEST_F(FirstDecision, TheGroupBeginsAfterIt) {
  EXPECT_EQ(decided_by("grep -q '\"decide\":true' $1 && touch $2/decided"), std::nullopt);
  EXPECT_TRUE(fs::exists(launch_.run_directory + "/decided"));
}

TEST_F(FirstDecision, IsMadeOnce) {
  std::ofstream(launch_.run_directory + "/resolved.yaml") << "name: x\n";
  EXPECT_EQ(decided_by("exit 1"), std::nullopt);
}

TEST_F(FirstDecision, AWorkerThatFailsEndsTheRun) {
  EXPECT_EQ(decided_by("exit 2"), 2);
  EXPECT_ERROR(error_of([&] { decided_by("kill -9 $$"); }), "FASTEST_UNDECIDED", "was ended: killed by SIGKILL");
}

TEST_F(FirstDecision, AStopEndsIt) {
  EXPECT_EQ(decided_by("sleep 100", {SIGUSR1, SIGINT}), 128 + SIGINT);
  EXPECT_EQ(decided_by("trap '' TERM; sleep 100", {SIGINT, SIGTERM}), 128 + SIGTERM) << "the second one is insistent";
}

}  // namespace
}  // namespace sinew::supervise
