// Faults that tests inject into a worker through environment variables: a slow machine, a deadly shard, a flipped bit.
// Every reader of a variable throws Error if its text is not understood.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "train/train.h"

namespace sinew::worker {

// SINEW_PACE: every shard takes this many times as long. At least 1, the default.
double pace_of_environment();

// SINEW_POISON=STEP:SHARD:HOW kills or hangs the worker when it computes this shard of this step. HOW is segv, abort,
// oom, error or hang.
class PoisonedShard {
 public:
  PoisonedShard();
  void apply(const Work& work) const;  // called by the lane that begins `work`

 private:
  int64_t step_ = 0, shard_ = 0;
  std::string how_;  // empty: no shard is poisoned
};

// SINEW_FLIP=STEP:MEMBER:WHAT[:BIT] flips one bit of one member's memory, once, in step STEP. MEMBER is 0 for a worker
// without a group. WHAT says where the bit is:
//   shard, audit                              a gradient of a shard that the member owns, or computes a second time
//   sums                                      the sums of all gradients that the member received
//   parameters, optimizer, averages, buffers  the state, before the step
// BIT counts the bits of the tensors of WHAT in their order; a number beyond the last bit wraps around. Without it, the
// highest bit of the fraction of the first value is flipped.
class FlippedBit {
 public:
  FlippedBit();
  void set_member(int64_t member) { me_ = member; }
  train::Faults faults();  // they refer to this object

 private:
  bool due(Step step) const { return left_ && step.value == step_ && me_ == member_; }
  void flip(const std::vector<torch::Tensor>& tensors) const;

  int64_t step_ = 0, member_ = 0;
  std::string what_;
  uint64_t bit_ = 0;
  std::atomic<bool> left_{false};
  std::atomic<int64_t> me_{-1};  // not known yet
};

}  // namespace sinew::worker
