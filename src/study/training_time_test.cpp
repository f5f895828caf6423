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

TEST(StudyTime, IsThatOfAllTrials) {
  StudyTime time;
  time.told(event(Kind::start, 0));
  time.told(event(Kind::start, 1));
  EXPECT_EQ(time.seconds(), 0);
  time.told(event(Kind::report, 0, 10));
  time.told(event(Kind::report, 1, 4));
  time.told(event(Kind::report, 0, 20));
  EXPECT_EQ(time.seconds(), 24);
  time.told(event(Kind::leave, 0, 21));
  time.told(event(Kind::end, 1, 9));
  EXPECT_EQ(time.of(0), 21);
  EXPECT_EQ(time.seconds(), 30);
  time.told(event(Kind::take, 0));
  time.trained(0, 25);
  EXPECT_EQ(time.seconds(), 34);
}

// A process goes on from its checkpoint and says again what was said: that was paid for.
TEST(StudyTime, NeverGoesBack) {
  StudyTime time;
  time.trained(3, 60);
  time.told(event(Kind::report, 3, 50));
  EXPECT_EQ(time.seconds(), 60);
  EXPECT_EQ(time.of(4), 0);
}

}  // namespace
}  // namespace sinew::study
