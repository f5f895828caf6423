// Measures how fast a worker computes shards. From the speeds of all workers, cluster/ computes the share of each: the
// fraction of a step's shards that the worker gets.
//
// Any thread may call it. The caller passes the time, so that a test can choose it.
#pragma once

#include <mutex>
#include <optional>

namespace sinew::distribute {

class SpeedMeter {
 public:
  // Call this when a collective of training begins. The meter then checks whether this worker receives shards of it.
  void begin_collective(double now);
  // Call this when a lane has computed one shard.
  void took(double seconds);

  // Returns the shards per second of one lane, or 0 before the first measurement. It is a mean over about the last
  // kSmoothSeconds of computing, so one preempted shard does not change the shares.
  //
  // A worker that has received no shard for a while reports twice its measured speed, then four times, and so on.
  // Otherwise a worker whose share is below one shard would never receive a shard again, even if it has become faster.
  // Its share grows until it receives a shard. The slower the worker is, the longer that takes. Trying one shard costs
  // the group little. One collective counts for at most one doubling, because a longer collective means an evaluation
  // or a halt, not a lack of shards. If the worker turns out to be still slow, the next doublings take twice as long,
  // until it has received shards for kSteadySeconds.
  double shards_a_second(double now) const;

  static constexpr double kSmoothSeconds = 2, kDoublingSeconds = 5, kLongestDoubling = 40, kSteadySeconds = 10;

 private:
  mutable std::mutex mutex_;
  double shards_ = 0, seconds_ = 0;  // the computed shards and their time; older ones count less
  bool given_ = true;                // true: this worker received a shard in this collective
  double collective_began_ = 0;
  std::optional<double> without_since_;  // start of the first collective without a shard
  std::optional<double> given_since_;    // start of the first collective with shards
  double doubling_ = kDoublingSeconds;
};

}  // namespace sinew::distribute
