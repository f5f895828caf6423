// Runs two trainings and a study at once in one process, as a program that embeds Sinew may do. Stops and resumes one
// training and the study, while the other training continues.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/disk.h"
#include "base/exit_code.h"
#include "base/signals.h"
#include "rundir/rundir.h"
#include "spec/spec.h"
#include "study/study.h"
#include "supervise/supervise.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

constexpr double kPatienceSeconds = 240;  // a timeout; a test that passes does not wait for it

std::string programs_directory() {
  const char* given = std::getenv("SINEW_BIN");
  return given == nullptr ? "" : given;
}

class Embed : public testing::Test {
 protected:
  void SetUp() override {
    if (programs_directory().empty()) FAIL() << "SINEW_BIN names no directory with the two programs";
    folder_ = fs::path(testing::TempDir()) / ("embed-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ofstream table(folder_ / "train.csv");
    table << "a,b,y\n";
    for (int i = 0; i < 400; ++i) table << i % 17 << "," << i % 5 << "," << (i % 17 + 3 * (i % 5)) << "\n";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string job(const std::string& name, int steps, const std::string& more = "") {
    const std::string path = folder_ / (name + ".yaml");
    std::ofstream(path) << "name: " << name << "\nmodel: {name: mlp, hidden: [16]}\ndata: {train: " << folder_.string()
                        << "/train.csv, columns: {target: y}, split: {val: 0.2}}\n"
                        << "trainer: {max_duration: " << steps << "st, batch_size: 32, eval_interval: 20st}\n"
                        << "checkpoint: {interval: 20st}\n"
                        << more;
    return path;
  }

  int train(const std::string& job_path, const std::string& run, SignalSource& signals, bool resume = false) {
    supervise::SupervisorOptions options;
    options.launch.programs = {[] { return programs_directory() + "/sinew"; }, programs_directory() + "/sinew-worker"};
    options.launch.run_directory = folder_ / run;
    options.launch.job = job_path;
    options.launch.resume = resume;
    options.launch.ledger = true;
    options.job_name = run;
    options.workers = options.workers_per_machine = 2;
    std::ostringstream said;
    options.say = [&said](const std::string& sentence) { said << sentence << "\n"; };
    fs::create_directories(options.launch.run_directory);
    const int code = supervise::supervise(options, signals, system_clock());
    if (code != kDone && code != kResumable) ADD_FAILURE() << run << " ended with " << code << ":\n" << said.str();
    return code;
  }

  std::string digest(const std::string& run) {
    const auto text = read_text(system_disk(), rundir::file_in(folder_ / run, rundir::kOutcomeFile));
    const auto outcome = rundir::parse_outcome(text);
    return outcome && outcome->status == "done" ? outcome->digest : "not done";
  }

  bool wait_for_step(const std::string& run, int lines) {
    const double end = system_clock().monotonic_seconds() + kPatienceSeconds;
    while (system_clock().monotonic_seconds() < end) {
      std::ifstream ledger(rundir::file_in(folder_ / run, rundir::kLedgerFile));
      int found = 0;
      for (std::string line; std::getline(ledger, line);) ++found;
      if (found >= lines) return true;
      system_clock().sleep_seconds(0.02);
    }
    return false;
  }

  int search(const std::string& job_path, SignalSource& signals, bool resume) {
    study::Options options;
    options.program = [] { return programs_directory() + "/sinew"; };
    options.output = [](const std::string&) {};
    const std::string directory = folder_ / "study";
    std::unique_ptr<study::StudySession> session;
    if (resume) {
      session = study::resume(options, directory, {});
    } else {
      study::NewStudy study;
      study.directory = directory;
      study.job_path = job_path;
      study.job_text = read_text(system_disk(), job_path);
      study.job = spec::read_job(study.job_text, job_path, {}, {}).job;
      session = study::begin(options, study);
    }
    return session->run(signals);
  }

  fs::path folder_;
};

TEST_F(Embed, TwoTrainingsAndAStudyDoNotDisturbEachOther) {
  const std::string one = job("one", 400), other = job("other", 300);
  const std::string searched = job("searched", 60,
                                   "tune: {trials: 4, parallel: 1, sampler: random, monitor: val/loss,\n"
                                   "  search: {optimizer.lr: {low: 1e-3, high: 0.1, log: true}}}\n");
  SignalQueue first, second, third;
  auto a = std::async(std::launch::async, [&] { return train(one, "one", first); });
  auto b = std::async(std::launch::async, [&] { return train(other, "other", second); });
  auto c = std::async(std::launch::async, [&] { return search(searched, third, false); });

  // A stop request reaches only the training or study that it was sent to.
  ASSERT_TRUE(wait_for_step("one", 30));
  first.send(SIGTERM);
  EXPECT_EQ(a.get(), kResumable);
  third.send(SIGTERM);
  const int stopped = c.get();
  EXPECT_TRUE(stopped == kResumable || stopped == kDone) << stopped;
  EXPECT_EQ(b.get(), kDone);

  // The stopped training and study are resumed side by side, and both finish.
  auto a2 = std::async(std::launch::async, [&] { return train(one, "one", first, true); });
  auto c2 = std::async(std::launch::async, [&] { return search(searched, third, true); });
  EXPECT_EQ(a2.get(), kDone);
  EXPECT_EQ(c2.get(), kDone);

  // The run that was stopped and resumed equals an undisturbed run to the last bit.
  SignalQueue none;
  EXPECT_EQ(train(one, "calm", none), kDone);
  EXPECT_EQ(digest("one"), digest("calm"));
  EXPECT_NE(digest("one"), digest("other"));
}

}  // namespace
}  // namespace sinew
