// Measures how fast a worker computes shards. It decides nothing; cluster/ computes shares from the speed.
//
// Any thread. The caller passes the time, so that a test can choose it.
#pragma once

#include <mutex>
#include <optional>

namespace sinew::distribute {

class SpeedMeter {
 public:
  // A collective of training begins. Until the next one begins, it shows whether this worker received shards.
  void begin_collective(double now);
  // One lane computed one shard.
  void took(double seconds);

  // Shards a second of one lane, over about the last kSmoothSeconds of computing, so that one preempted shard does not
  // change the shares. 0: not measured yet.
  //
  // A worker that has received no shard for a while reports twice its measured speed, then four times, and so on.
  // Otherwise a share that is too small for one shard would stay so for ever. The growing share comes to one shard at
  // some time, the later the slower the worker is, and trying it with one shard costs the group little. A collective
  // counts for at most one doubling, because a longer one is an evaluation or a halt, not a lack of shards. After each
  // vain try the doublings take twice as long; this is forgotten when the worker has received shards for
  // kSteadySeconds.
  double shards_a_second(double now) const;

  static constexpr double kSmoothSeconds = 2, kDoublingSeconds = 5, kLongestDoubling = 40, kSteadySeconds = 10;

 private:
  mutable std::mutex mutex_;
  double shards_ = 0, seconds_ = 0;  // recent ones; the weight of older ones decreases
  bool given_ = true;                // it received a shard in this collective
  double collective_began_ = 0;
  std::optional<double> without_since_;  // start of the first collective without a shard
  std::optional<double> given_since_;    // start of the first collective with shards
  double doubling_ = kDoublingSeconds;
};

}  // namespace sinew::distribute
