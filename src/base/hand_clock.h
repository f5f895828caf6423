// For tests: a clock that a test moves.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace sinew {

// Stands still until it is told; sleeping is real, so that who waits for another process does.
class HandClock final : public Clock {
 public:
  double monotonic_seconds() const override { return seconds; }
  double wall_seconds() const override { return 1'800'000'000.0 + seconds; }
  void sleep_seconds(double duration) override { system_clock().sleep_seconds(duration); }
  std::atomic<double> seconds = 1000;
};

}  // namespace sinew
