// Tests studies of a program that only pretends to train. The studies run to their end, stop and continue, and several
// run in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <mutex>
#include <thread>

#include "base/disk.h"
#include "base/exit_code.h"
#include "study/record_file.h"
#include "study/search_space.h"
#include "study/study.h"

namespace sinew::study {
namespace {

using testing::Contains;
using testing::HasSubstr;

// A script that takes the place of `sinew`. It evaluates ten times, continues where it stopped, and ends early on
// SIGTERM.
constexpr const char* kProgram = R"sh(#!/bin/sh
dir=$4
[ "$1" = resume ] && dir=$2
for word in "$@"; do
  case $word in params.x=*) echo "${word#*=}" > "$dir/x" ;; esac
done
: > "$dir/resolved.yaml"
step=$(cat "$dir/step" 2>/dev/null || echo 0)
trap 'asked=yes' TERM
while [ "$step" -lt 10 ]; do
  step=$((step + 1))
  echo "{\"step\": $step, \"val/loss\": $(cat "$dir/x")}" >> "$dir/metrics.jsonl"
  echo $step > "$dir/step"
  [ -n "$asked" ] && exit 75
  sleep 0.02
done
)sh";

constexpr const char* kJob = R"(
command: [unused]
params: {x: 0}
tune:
  trials: 6
  parallel: 2
  sampler: random
  pruner: none
  monitor: val/loss
  search: {params.x: {low: 0.0, high: 1.0}}
)";

// One study, and the lines that its sessions output.
struct Led {
  explicit Led(const std::string& name) : directory(testing::TempDir() + "session_" + name) {
    system_disk().remove_all(directory);
    system_disk().make_directories(directory);
    const std::string program = directory + "/program.sh";
    write_durably(system_disk(), program, std::string_view(kProgram));
    ::chmod(program.c_str(), 0755);
    options.program = [program] { return program; };
    options.output = [this](const std::string& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line);
    };
    study.directory = directory + "/study";
    study.job_path = "job.yaml";
    study.job_text = kJob;
    const spec::Reading reading = spec::read_job(kJob, "job.yaml", {}, {});
    EXPECT_TRUE(reading.problems.empty());
    study.job = reading.job;
  }
  size_t count() {
    const std::lock_guard lock(mutex);
    return lines.size();
  }
  ReadStudy read() const {
    return read_study(system_disk(), study.directory + "/study.jsonl", space_of(study.job.tune));
  }
  int64_t completed() const {
    return std::ranges::count_if(read().events, [](const StudyEvent& event) {
      return event.kind == StudyEvent::Kind::end && event.state == tune::TrialState::complete;
    });
  }

  std::string directory;
  Options options;
  NewStudy study;
  std::mutex mutex;
  std::vector<std::string> lines;
};

TEST(StudySession, RunsAStudyToItsEndAndPrintsNothing) {
  Led led("end");
  testing::internal::CaptureStdout();
  SignalQueue signals;
  EXPECT_EQ(begin(led.options, led.study)->run(signals), kDone);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(led.completed(), 6);
  EXPECT_THAT(led.lines, Contains(HasSubstr("best val/loss")));
  EXPECT_TRUE(system_disk().exists(led.study.directory + "/report.html"));
  try {
    begin(led.options, led.study);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("STUDY_EXISTS"));
  }
  led.lines.clear();
  report(led.options, led.study.directory);
  EXPECT_THAT(led.lines, Contains(HasSubstr("best val/loss")));
}

TEST(StudySession, TwoStudiesInOneProcessStopAndContinueIndependently) {
  Led one("one"), two("two");
  SignalQueue stop_one, stop_two;
  int code_of_one = -1, code_of_two = -1;
  std::thread first([&] { code_of_one = begin(one.options, one.study)->run(stop_one); });
  std::thread second([&] { code_of_two = begin(two.options, two.study)->run(stop_two); });
  while (one.count() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // two trials have started
  stop_one.send(SIGTERM);
  first.join();
  EXPECT_EQ(code_of_one, kResumable);
  EXPECT_LT(one.completed(), 6);
  second.join();
  EXPECT_EQ(code_of_two, kDone) << "the other study goes on";
  EXPECT_EQ(two.completed(), 6);

  SignalQueue signals;
  EXPECT_EQ(resume(one.options, one.study.directory, {})->run(signals), kDone);
  EXPECT_EQ(one.completed(), 6);
  EXPECT_EQ(resume(one.options, one.study.directory, {.more_trials = 1})->run(signals), kDone);
  EXPECT_EQ(one.completed(), 7);
}

TEST(StudySession, ASecondSignalKillsTheTrials) {
  Led led("kill");
  SignalQueue signals;
  int code = -1;
  std::thread leader([&] { code = begin(led.options, led.study)->run(signals); });
  while (led.count() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // two trials have started
  signals.send(SIGINT);
  signals.send(SIGINT);
  leader.join();
  EXPECT_EQ(code, kResumable);
}

TEST(StudySession, TwoSessionsShareAStudy) {
  Led led("shared");
  SignalQueue signals, others;
  auto session = begin(led.options, led.study);
  int code = -1;
  std::thread other([&] { code = resume(led.options, led.study.directory, {})->run(others); });
  EXPECT_EQ(session->run(signals), kDone);
  other.join();
  EXPECT_EQ(code, kDone);
  EXPECT_EQ(led.completed(), 6);
}

TEST(StudySession, RefusesAnInvalidSearchBeforeItMakesADirectory) {
  const std::string search = "search: {params.x: {low: 0.0, high: 1.0}}", monitored = search + ", monitor: val/loss";
  struct Case {
    std::string tune, code;
    std::vector<std::string> overrides = {};
  };
  const std::vector<Case> cases = {
      {"", "TUNE_NO_SEARCH"},
      {"tune: {" + search + "}", "TUNE_NO_METRIC"},
      {"tune: {" + monitored + "}", "TUNE_SEARCHED_AND_GIVEN", {"params.x=1"}},
      {"tune: {" + monitored + ", pruner: asha}", "TUNE_EVALUATIONS_UNKNOWN"},
      {"tune: {" + monitored + ", pruner: curve, deterministic: true}", "TUNE_PRUNER_NOT_DETERMINISTIC"},
      {"tune: {" + monitored + ", sampler: pbt, trials: 6, population: 3, evaluations: 9}", "TUNE_UNEVEN_GENERATIONS"},
  };
  Led led("refused");
  for (const auto& [tune, code, overrides] : cases) {
    led.study.job_text = "command: [unused]\nparams: {x: 0}\n" + tune + "\n";
    led.study.overrides = overrides;
    const spec::Reading reading = spec::read_job(led.study.job_text, "job.yaml", overrides, {});
    ASSERT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
    led.study.job = reading.job;
    try {
      begin(led.options, led.study);
      FAIL() << code;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.code.text(), code);
    }
    EXPECT_FALSE(system_disk().exists(led.study.directory));
  }
}

}  // namespace
}  // namespace sinew::study
