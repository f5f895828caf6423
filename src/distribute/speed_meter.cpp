#include "distribute/speed_meter.h"

#include <algorithm>
#include <cmath>

namespace sinew::distribute {

void SpeedMeter::begin_round(double now) {
  const std::lock_guard lock(mutex_);
  if (without_since_) *without_since_ += std::max(0.0, now - round_began_ - kDoublingSeconds);
  if (given_) {
    without_since_.reset();
  } else if (!without_since_) {
    without_since_ = std::max(round_began_, now - kDoublingSeconds);
  }
  given_ = false;
  round_began_ = now;
}

void SpeedMeter::took(double seconds) {
  const std::lock_guard lock(mutex_);
  const double kept = std::exp(-seconds / kSmoothSeconds);
  shards_ = shards_ * kept + 1;
  seconds_ = seconds_ * kept + seconds;
  given_ = true;
  without_since_.reset();
}

double SpeedMeter::shards_a_second(double now) const {
  const std::lock_guard lock(mutex_);
  if (seconds_ <= 0) return 0;
  const double measured = shards_ / seconds_;
  if (!without_since_) return measured;
  const double without = std::min(now, round_began_ + kDoublingSeconds) - *without_since_;
  // By whole doublings: each is a change of shares, and these are told.
  return measured * std::exp2(std::floor(without / kDoublingSeconds));
}

}  // namespace sinew::distribute
