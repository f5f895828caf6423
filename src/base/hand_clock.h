// For tests: a clock whose time the test sets.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace sinew {

// Time passes only when the test sets it. But sleeping takes real time, because a test may wait for a process.
class HandClock final : public Clock {
 public:
  double monotonic_seconds() const override { return seconds; }
  double wall_seconds() const override { return 1'800'000'000.0 + seconds; }
  void sleep_seconds(double duration) override { system_clock().sleep_seconds(duration); }
  std::atomic<double> seconds = 1000;
};

}  // namespace sinew
