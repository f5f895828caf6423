#include "base/going_back.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(GoingBack, EndsAfterThreeTimesWithoutANewerCheckpoint) {
  GoingBack state;
  for (int64_t times = 1; times <= kMostGoingBack; ++times) {
    state = state.once_more(100, "member 2 has another state");
    EXPECT_EQ(state.count, times);
    EXPECT_FALSE(state.too_often());
  }
  state = state.once_more(-1, "again");  // the newest checkpoint is not known this time
  EXPECT_TRUE(state.too_often());
  EXPECT_EQ(state.durable, 100);
  EXPECT_EQ(state.why, "again");
}

TEST(GoingBack, ANewerCheckpointBeginsTheCountAnew) {
  GoingBack state;
  for (int64_t step = 100; step < 2000; step += 100) {
    state = state.once_more(step, "");
    EXPECT_EQ(state.count, 1);
    state = state.once_more(step, "");
    EXPECT_EQ(state.count, 2);
  }
}

}  // namespace
}  // namespace sinew
