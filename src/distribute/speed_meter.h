// How fast a worker computes shards, by the shards it computed. Decides nothing: cluster/ gives shares by it.
//
// Any thread. The caller says what time it is, so that a test can.
#pragma once

#include <mutex>
#include <optional>

namespace sinew::distribute {

class SpeedMeter {
 public:
  // A round of training begins: what it gives this worker shows by the next.
  void begin_collective(double now);
  // One lane computed one shard.
  void took(double seconds);

  // Shards a second of one lane: those of about the last kSmoothSeconds of computing, so that one that was preempted
  // moves no shares. 0: nothing was measured yet.
  //
  // Who was given no shard for a while says twice what it measured, then four times, ...: a share too small for a shard
  // would else stay so for ever. So it is tried again with the one shard that its growing share first comes to, the
  // later the slower it was, and the round is held up by little. A round counts for one doubling at most: what is
  // longer is an evaluation or a halt, not a lack of shards. Each time it is tried in vain, the doublings take twice as
  // long; that is forgotten when it was given shards for kSteadySeconds.
  double shards_a_second(double now) const;

  static constexpr double kSmoothSeconds = 2, kDoublingSeconds = 5, kLongestDoubling = 40, kSteadySeconds = 10;

 private:
  mutable std::mutex mutex_;
  double shards_ = 0, seconds_ = 0;  // of late: older ones count ever less
  bool given_ = true;                // a shard in this round
  double collective_began_ = 0;
  std::optional<double> without_since_;  // the first round of those that gave it nothing
  std::optional<double> given_since_;    // the first round of those that gave it shards
  double doubling_ = kDoublingSeconds;
};

}  // namespace sinew::distribute
