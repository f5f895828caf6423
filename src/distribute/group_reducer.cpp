#include "distribute/group_reducer.h"

#include <algorithm>

#include "distribute/small_sums.h"

namespace sinew::distribute {
namespace {

constexpr double kLongestPause = 2;  // seconds

thread_local double shard_began = 0;  // when this lane began its shard

}  // namespace

GroupReducer::GroupReducer(group::Group& group, double pace, Clock& clock)
    : group_(group), pace_(pace), clock_(clock) {}

void GroupReducer::begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
                         std::optional<Mark> mark, const Audit& audit, const Purpose& purpose) {
  gradients_ = gradients;
  training_ = !gradients.empty();
  if (training_) meter_.begin_collective(clock_.monotonic_seconds());
  std::vector<int64_t> lengths;
  for (const torch::Tensor& gradient : gradients) lengths.push_back(gradient.numel());
  group_.begin(shards, std::move(lengths), std::move(control_message), mark, audit, purpose);
}

std::optional<ShardTask> GroupReducer::next_shard() {
  const auto shard = group_.next_shard();
  if (shard) {
    const int busy = ++busy_;
    if (busy > lanes_) lanes_ = busy;
    shard_began = clock_.monotonic_seconds();
  }
  return shard;
}

void GroupReducer::measure(bool present) {
  --busy_;
  const double took = clock_.monotonic_seconds() - shard_began;
  // A process that was suspended while it computed this shard would otherwise sleep for many times that long.
  if (pace_ > 1) clock_.sleep_seconds(std::min(took * (pace_ - 1), kLongestPause));
  if (training_ && present) meter_.took(took * pace_);
}

void GroupReducer::deliver(ShardIndex shard, std::optional<train::Contribution> leaf) {
  measure(leaf.has_value());
  if (!leaf) return group_.deliver(shard, std::nullopt);
  group_.deliver(shard, leaf_of(std::move(*leaf)));
}

void GroupReducer::deliver_audit(ShardIndex shard, std::optional<train::Contribution> leaf) {
  measure(leaf.has_value());
  if (!leaf) return group_.deliver_audit(shard, std::nullopt);
  group_.deliver_audit(shard, leaf_of(std::move(*leaf)));
}

group::Leaf GroupReducer::leaf_of(train::Contribution contribution) const {
  group::Leaf leaf;
  leaf.small = encoded(contribution);
  const auto held = std::make_shared<std::vector<torch::Tensor>>(std::move(contribution.gradients));
  for (torch::Tensor& gradient : *held) {
    if (gradient.defined() && !gradient.is_cpu()) gradient = gradient.cpu();
    leaf.rows.push_back(gradient.defined() ? gradient.const_data_ptr<float>() : nullptr);
  }
  leaf.keep = held;
  return leaf;
}

train::Reducer::Reduced GroupReducer::reduced() {
  std::vector<torch::Tensor> staged;  // host memory for gradients on another device
  std::vector<float*> out;
  for (const torch::Tensor& gradient : gradients_) {
    staged.push_back(gradient.is_cpu() ? gradient : torch::empty_like(gradient, torch::kCPU));
    out.push_back(staged.back().mutable_data_ptr<float>());
  }
  const group::Reduced found = group_.finish(out);
  Reduced reduced;
  reduced.present = found.present;
  reduced.present.resize(gradients_.size(), false);
  for (size_t p = 0; p < gradients_.size(); ++p) {
    if (reduced.present[p] && !gradients_[p].is_cpu()) gradients_[p].copy_(staged[p]);
  }
  if (found.any) reduced.sums = decoded(found.small);
  reduced.control_message = found.control_message;
  reduced.compare = found.compare;
  reduced.wrong = found.wrong;
  return reduced;
}

std::vector<double> GroupReducer::shares() const {
  std::vector<double> shares;
  for (const cluster::ViewMember& member : group_.view().members) {
    if (member.joining || member.share <= 0) continue;  // a share of 0: it leaves
    shares.insert(member.id == group_.id() ? shares.begin() : shares.end(), static_cast<double>(member.share));
  }
  return shares;
}

double GroupReducer::speed() const {
  return lanes_ * meter_.shards_a_second(clock_.monotonic_seconds());
}

}  // namespace sinew::distribute
