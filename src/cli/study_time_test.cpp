#include "cli/study_time.h"

#include <gtest/gtest.h>

namespace sinew::cli {
namespace {

using Kind = StudyEvent::Kind;

StudyEvent event(Kind kind, int64_t id, std::optional<double> seconds = {}) {
  StudyEvent made{.kind = kind, .id = id};
  made.seconds = seconds;
  return made;
}

TEST(StudyTime, IsThatOfAllLivesOfAllTrials) {
  StudyTime time;
  time.told(event(Kind::start, 0));
  time.told(event(Kind::start, 1));
  EXPECT_EQ(time.seconds(), 0);
  time.told(event(Kind::report, 0, 10));
  time.told(event(Kind::report, 1, 4));
  time.told(event(Kind::report, 0, 20));
  EXPECT_EQ(time.seconds(), 24);
  time.told(event(Kind::pause, 0, 21));
  time.told(event(Kind::end, 1, 9));
  EXPECT_EQ(time.seconds(), 30);
  time.told(event(Kind::resume, 0));
  EXPECT_EQ(time.seconds(), 30);
  time.told(event(Kind::report, 0, 5));
  EXPECT_EQ(time.seconds(), 35);
  time.told(event(Kind::take, 0));  // another process, whose own is gone
  time.told(event(Kind::end, 0, 2));
  EXPECT_EQ(time.seconds(), 37);
}

TEST(StudyTime, WhatRunsCountsBeforeItSaysAWordAndAKilledProcessCounts) {
  StudyTime time;
  time.told(event(Kind::start, 3));
  time.runs(3, 1.5);
  time.runs(3, 2.5);
  EXPECT_EQ(time.seconds(), 2.5);
  time.runs(3, 0.5);  // it was killed, and is there again
  EXPECT_EQ(time.seconds(), 3);
}

TEST(StudyTime, OlderRecordsSayNothingOfIt) {
  StudyTime time;
  time.told(event(Kind::start, 0));
  time.told(event(Kind::end, 0));
  EXPECT_EQ(time.seconds(), 0);
}

}  // namespace
}  // namespace sinew::cli
