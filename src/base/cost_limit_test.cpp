#include "base/cost_limit.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/expected_error.h"
#include "base/hand_clock.h"

namespace sinew {
namespace {

TEST(CostLimit, EndsByTimeByMemoryAndWhenTheClientLeaves) {
  HandClock clock;
  const auto left = std::make_shared<std::atomic<bool>>(false);
  CostLimit limit(clock, clock.monotonic_seconds() + 5, 100, left);
  limit.check();
  limit.hold(60);
  limit.release(30);
  limit.hold(70);
  EXPECT_EQ(code_of([&] { limit.hold(1); }), "REQUEST_TOO_LARGE");
  clock.seconds = clock.seconds + 6;
  EXPECT_TRUE(limit.is_over());
  EXPECT_EQ(code_of([&] { limit.check(); }), "REQUEST_TOO_LONG");
  *left = true;
  EXPECT_EQ(code_of([&] { limit.check(); }), "REQUEST_ABANDONED");
}

TEST(CostLimit, BelongsToOneThreadAndOneScope) {
  HandClock clock;
  CostLimit limit(clock, 0, 0);
  {
    const CostLimit::Scope scope(&limit);
    EXPECT_EQ(code_of([] { CostLimit::check_current(); }), "REQUEST_TOO_LONG");
    {
      const CostLimit::Scope none(nullptr);
      CostLimit::check_current();
    }
    EXPECT_EQ(CostLimit::current(), &limit);
    std::thread([] { EXPECT_EQ(CostLimit::current(), nullptr); }).join();
  }
  CostLimit::check_current();
  CostLimit::hold_current(1);
}

}  // namespace
}  // namespace sinew
