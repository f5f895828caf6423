// Implements train's Reducer over a group. It uses the same tree as a single process, so the result has the same bits,
// whichever member computes a shard. Private to distribute/.
#pragma once

#include <atomic>

#include "distribute/speed_meter.h"
#include "group/group.h"
#include "train/train.h"

namespace sinew::distribute {

class GroupReducer final : public train::Reducer {
 public:
  // `pace`: see JoinOptions. The group must outlive the reducer.
  GroupReducer(group::Group& group, double pace, Clock& clock);

  void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
             std::optional<Mark> mark, const Audit& audit, const Purpose& purpose) override;
  bool compares() const override { return group_.has_peers(); }
  std::optional<ShardTask> next_shard() override;
  void deliver(ShardIndex shard, std::optional<train::Contribution> leaf) override;
  void deliver_audit(ShardIndex shard, std::optional<train::Contribution> leaf) override;
  void reduce() override {}  // when next_shard returns nullopt, the result is already here
  Reduced reduced() override;
  void give_up() override { group_.fence("a shard failed on this worker"); }
  double waited_seconds() const override { return group_.counts().waited_seconds; }
  NetworkUse traffic() const override { return group_.traffic(); }
  std::vector<double> shares() const override;
  bool expects(ShardIndex shard, int64_t shards) const override { return group_.expects(shard.value, shards); }

  // Returns how many shards all lanes together compute per second (see SpeedMeter), or 0 if that is not known yet.
  double speed() const;

 private:
  group::Leaf leaf_of(train::Contribution contribution) const;
  void measure(bool present);  // a lane has computed a shard

  group::Group& group_;
  double pace_;
  Clock& clock_;
  std::vector<torch::Tensor> gradients_;
  bool training_ = false;  // true: the collective has gradients; the speed is measured only in such collectives
  SpeedMeter meter_;
  std::atomic<int> lanes_{1};
  std::atomic<int> busy_{0};
};

}  // namespace sinew::distribute
