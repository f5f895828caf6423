// The reducer of a single process: the fixed tree (base/tree.h) over the contributions of its lanes.
#include <atomic>

#include "base/error.h"
#include "train/blocks.h"
#include "train/train.h"

namespace sinew::train {

void add(Contribution& left, Contribution&& right) {
  left.loss += right.loss;
  left.weight += right.weight;
  left.samples += right.samples;
  for (size_t i = 0; i < right.counts.size(); ++i) left.counts.at(i) += right.counts[i];
  for (size_t i = 0; i < right.sums.size(); ++i) left.sums.at(i) += right.sums[i];
  left.scores.insert(left.scores.end(), right.scores.begin(), right.scores.end());
  for (size_t i = 0; i < right.buffers.size(); ++i) {
    torch::Tensor& mine = left.buffers.at(i);
    torch::Tensor& other = right.buffers[i];
    if (!other.defined()) continue;
    if (!mine.defined()) {
      mine = std::move(other);
    } else if (mine.is_floating_point()) {
      mine.add_(other);
    } else if (!torch::equal(mine, other)) {
      throw Error("TRAIN_BUFFER_CONFLICT", "an integer or boolean buffer changed differently in two shards of one step",
                  "such buffers must change in the same way for all samples");
    }
  }
}

namespace {

class LocalReducer final : public Reducer {
 public:
  void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message) override {
    control_message_ = std::move(control_message);
    leaves_.clear();
    leaves_.resize(static_cast<size_t>(shards));
    if (gradients.size() != gradients_.size()) blocks_ = make_blocks(gradients);
    gradients_ = gradients;
    next_ = 0;
    next_group_ = 0;
  }

  std::optional<ShardIndex> next_shard() override {
    const int64_t shard = next_.fetch_add(1);
    if (shard >= static_cast<int64_t>(leaves_.size())) return std::nullopt;
    return ShardIndex(shard);
  }

  void deliver(ShardIndex shard, std::optional<Contribution> leaf) override {
    leaves_.at(static_cast<size_t>(shard.value)) = std::move(leaf);
  }

  void reduce() override {
    std::vector<const float*> pointers(leaves_.size());
    for (size_t group = next_group_++; group < blocks_.groups.size(); group = next_group_++) {
      for (size_t b = blocks_.groups[group].first; b < blocks_.groups[group].last; ++b) {
        const Block& block = blocks_.blocks[b];
        for (size_t s = 0; s < leaves_.size(); ++s) pointers[s] = gradient_of(s, block);
        tree_sum(pointers, block.end - block.begin,
                 gradients_[block.parameter].mutable_data_ptr<float>() + block.begin);
      }
    }
  }

  Reduced reduced() override {
    Reduced reduced;
    reduced.present.assign(gradients_.size(), false);
    for (const auto& leaf : leaves_) {
      if (!leaf) continue;
      for (size_t p = 0; p < leaf->gradients.size(); ++p)
        reduced.present[p] = reduced.present[p] || leaf->gradients[p].defined();
    }
    if (auto sums = sum_of(0, width())) reduced.sums = std::move(*sums);
    reduced.control_message = std::move(control_message_);
    return reduced;
  }

 private:
  const float* gradient_of(size_t shard, const Block& block) const {
    if (!leaves_[shard] || !leaves_[shard]->gradients[block.parameter].defined()) return nullptr;
    return leaves_[shard]->gradients[block.parameter].const_data_ptr<float>() + block.begin;
  }

  size_t width() const {
    size_t width = 1;
    while (width < leaves_.size()) width *= 2;
    return width;
  }

  // Returns the sums, except the gradients, of leaves [first, first + width), added by the same tree.
  std::optional<Contribution> sum_of(size_t first, size_t width) {
    if (first >= leaves_.size()) return std::nullopt;
    if (width == 1) {
      if (leaves_[first]) leaves_[first]->gradients.clear();
      return std::move(leaves_[first]);
    }
    auto left = sum_of(first, width / 2), right = sum_of(first + width / 2, width / 2);
    if (!left) return right;
    if (right) add(*left, std::move(*right));
    return left;
  }

  std::vector<std::optional<Contribution>> leaves_;
  std::vector<torch::Tensor> gradients_;
  Blocks blocks_;
  std::string control_message_;
  std::atomic<int64_t> next_{0};
  std::atomic<size_t> next_group_{0};
};

}  // namespace

std::unique_ptr<Reducer> make_local_reducer() {
  return std::make_unique<LocalReducer>();
}

}  // namespace sinew::train
