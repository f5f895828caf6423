#include "distribute/speed_meter.h"

#include <algorithm>
#include <cmath>

namespace sinew::distribute {

void SpeedMeter::begin_collective(double now) {
  const std::lock_guard lock(mutex_);
  if (without_since_) *without_since_ += std::max(0.0, now - collective_began_ - doubling_);
  if (given_) {
    if (!given_since_) given_since_ = collective_began_;
    if (now - *given_since_ >= kSteadySeconds) doubling_ = kDoublingSeconds;
  } else {
    given_since_.reset();
    if (!without_since_) without_since_ = std::max(collective_began_, now - doubling_);
  }
  given_ = false;
  collective_began_ = now;
}

void SpeedMeter::took(double seconds) {
  const std::lock_guard lock(mutex_);
  const double kept = std::exp(-seconds / kSmoothSeconds);
  shards_ = shards_ * kept + 1;
  seconds_ = seconds_ * kept + seconds;
  given_ = true;
  // If the worker has become faster, it keeps its shards, and begin_collective sets doubling_ back.
  if (without_since_) doubling_ = std::min(2 * doubling_, kLongestDoubling);
  without_since_.reset();
}

double SpeedMeter::shards_a_second(double now) const {
  const std::lock_guard lock(mutex_);
  if (seconds_ <= 0) return 0;
  const double measured = shards_ / seconds_;
  if (!without_since_) return measured;
  const double without = std::min(now, collective_began_ + doubling_) - *without_since_;
  // Rounds down to whole doublings. Every change of the speed may change the shares, and that needs a new view.
  return measured * std::exp2(std::floor(without / doubling_));
}

}  // namespace sinew::distribute
