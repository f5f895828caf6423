// Tests the report of an attempt that failed before its training loop could report it.
#include <gtest/gtest.h>

#include "base/exit_code.h"
#include "base/faulty_disk.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

class FailedAttempt : public testing::Test {
 protected:
  FailedAttempt() { disk_.make_directories("run"); }
  Outcome report() { return *parse_outcome(report_text(disk_, "run")); }
  void write_report(const Outcome& outcome) { write_durably(disk_, "run/report.json", outcome_json(outcome)); }

  FaultyDisk disk_;
};

TEST_F(FailedAttempt, SaysWhyAndHowLong) {
  report_failed_attempt(disk_, {"run", "digits", 1000.0, ""}, "no such file", "check the path", 1002.5);
  EXPECT_EQ(report().status, "failed");
  EXPECT_EQ(report().exit_code, kTrainingError);
  EXPECT_EQ(report().job, "digits");
  EXPECT_EQ(report().started_wall_seconds, 1000.0);
  EXPECT_EQ(report().seconds, 2.5);
  EXPECT_EQ(report().error, "no such file");
  EXPECT_EQ(report().hint, "check the path");
}

TEST_F(FailedAttempt, LeavesTheReportThatItWroteItself) {
  Outcome own;
  own.job = "own";
  write_report(own);
  report_failed_attempt(disk_, {"run", "digits", 0, "an earlier report"}, "why", "", 1);
  EXPECT_EQ(report().job, "own");
}

TEST_F(FailedAttempt, KeepsWhatAnEarlierAttemptTrained) {
  Outcome earlier;
  earlier.status = "stopped";
  earlier.steps = 7;
  earlier.digest = "0123";
  write_report(earlier);
  for (int attempt = 0; attempt < 2; ++attempt) {
    report_failed_attempt(disk_, {"run", "digits", 0, report_text(disk_, "run")}, "why", "", 1);
    EXPECT_EQ(report().status, "failed");
    EXPECT_EQ(report().earlier_status, "stopped");
    EXPECT_EQ(report().steps, 7);
    EXPECT_EQ(report().digest, "0123");
  }
}

}  // namespace
}  // namespace sinew::rundir
