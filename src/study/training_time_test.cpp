#include "study/training_time.h"

#include <gtest/gtest.h>

namespace sinew::study {
namespace {

using Kind = StudyEvent::Kind;

StudyEvent event(Kind kind, int64_t id, std::optional<double> seconds = {}) {
  StudyEvent made{.kind = kind, .id = id};
  made.seconds = seconds;
  return made;
}

TEST(TrainingTime, SumsAllTrials) {
  TrainingTime time;
  time.observe(event(Kind::start, 0));
  time.observe(event(Kind::start, 1));
  EXPECT_EQ(time.seconds(), 0);
  time.observe(event(Kind::report, 0, 10));
  time.observe(event(Kind::report, 1, 4));
  time.observe(event(Kind::report, 0, 20));
  EXPECT_EQ(time.seconds(), 24);
  time.observe(event(Kind::leave, 0, 21));
  time.observe(event(Kind::end, 1, 9));
  EXPECT_EQ(time.of(0), 21);
  EXPECT_EQ(time.seconds(), 30);
  time.observe(event(Kind::take, 0));
  time.add(0, 25);
  EXPECT_EQ(time.seconds(), 34);
}

// A process that starts from a checkpoint repeats work and reports a shorter time. The longer time was already paid
// for.
TEST(TrainingTime, NeverGoesBack) {
  TrainingTime time;
  time.add(3, 60);
  time.observe(event(Kind::report, 3, 50));
  EXPECT_EQ(time.seconds(), 60);
  EXPECT_EQ(time.of(4), 0);
}

}  // namespace
}  // namespace sinew::study
