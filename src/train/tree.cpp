// The reducer of a single process: the fixed tree (base/tree.h) over the contributions of its lanes.
#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "base/folding_tree.h"
#include "train/blocks.h"
#include "train/train.h"

namespace sinew::train {

void add(Contribution& left, Contribution&& right) {
  left.loss += right.loss;
  left.weight += right.weight;
  left.samples += right.samples;
  left.buffers_conflict = left.buffers_conflict || right.buffers_conflict;
  left.not_decoded.insert(left.not_decoded.end(), right.not_decoded.begin(), right.not_decoded.end());
  left.scores.insert(left.scores.end(), right.scores.begin(), right.scores.end());
  // A shard of which no sample decodes has empty lists.
  if (left.counts.empty()) left.counts.swap(right.counts);
  if (left.sums.empty()) left.sums.swap(right.sums);
  if (left.buffers.empty()) left.buffers.swap(right.buffers);
  for (size_t i = 0; i < right.counts.size(); ++i) left.counts.at(i) += right.counts[i];
  for (size_t i = 0; i < right.sums.size(); ++i) left.sums.at(i) += right.sums[i];
  for (size_t i = 0; i < right.buffers.size(); ++i) {
    torch::Tensor& mine = left.buffers.at(i);
    torch::Tensor& other = right.buffers[i];
    if (!other.defined()) continue;
    if (!mine.defined()) {
      mine = std::move(other);
    } else if (mine.is_floating_point()) {
      mine.add_(other);
    } else if (!torch::equal(mine, other)) {
      left.buffers_conflict = true;
    }
  }
}

namespace {

using Gradients = std::vector<torch::Tensor>;  // by parameter, undefined if absent; empty if the shard had no samples

// Returns whether nothing else refers to the tensor's memory, so that a sum may be written into it.
bool is_ours(const torch::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.storage().resizable();
}

const float* values_of(const Gradients& gradients, size_t parameter) {
  if (gradients.empty() || !gradients[parameter].defined()) return nullptr;
  return gradients[parameter].const_data_ptr<float>();
}

// Adds the gradients of up to four siblings, into the memory of one of them.
Gradients sum_of_siblings(std::vector<Gradients> siblings) {
  size_t parameters = 0;
  for (const Gradients& gradients : siblings) parameters = std::max(parameters, gradients.size());
  Gradients sums(parameters);
  std::vector<const float*> pointers;
  for (size_t p = 0; p < parameters; ++p) {
    std::vector<torch::Tensor*> present;
    for (Gradients& gradients : siblings) {
      if (!gradients.empty() && gradients[p].defined()) present.push_back(&gradients[p]);
    }
    if (present.empty()) continue;
    const auto ours = std::ranges::find_if(present, [](const torch::Tensor* tensor) { return is_ours(*tensor); });
    if (present.size() == 1) {
      sums[p] = std::move(*present[0]);
      continue;
    }
    const torch::Tensor out = ours != present.end() ? **ours : torch::empty_like(*present[0]);
    float* values = out.mutable_data_ptr<float>();
    pointers.clear();
    for (const Gradients& gradients : siblings) pointers.push_back(values_of(gradients, p));
    tree_sum(pointers, out.numel(), values);
    for (torch::Tensor* tensor : present) tensor->reset();  // frees the memory before the next parameter needs some
    sums[p] = out;
  }
  return sums;
}

class LocalReducer final : public Reducer {
 public:
  explicit LocalReducer(int64_t held_bytes) : held_bytes_(held_bytes) {}

  void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
             std::optional<Mark>, const Audit&, const Purpose&) override {
    control_message_ = std::move(control_message);
    leaves_.clear();
    leaves_.resize(static_cast<size_t>(shards));
    tree_.begin(shards);
    if (gradients.size() != gradients_.size()) blocks_ = make_blocks(gradients);
    gradients_ = gradients;
    size_t bytes = 0;  // the size of one shard's gradients
    for (const torch::Tensor& gradient : gradients) bytes += gradient.nbytes();
    folds_ = static_cast<int64_t>(bytes) * shards > held_bytes_;
    next_ = 0;
    next_group_ = 0;
  }

  std::optional<ShardTask> next_shard() override {
    const int64_t shard = next_.fetch_add(1);
    if (shard >= static_cast<int64_t>(leaves_.size())) return std::nullopt;
    return ShardTask{ShardIndex(shard)};
  }

  // Folds gradients while lanes compute. Once no lane will begin another shard, leaves the rest to reduce(), which all
  // lanes share.
  void deliver(ShardIndex shard, std::optional<Contribution> leaf) override {
    if (!gradients_.empty()) {
      const bool folds = folds_ && next_ < static_cast<int64_t>(leaves_.size());
      Gradients own = leaf ? std::exchange(leaf->gradients, {}) : Gradients();
      tree_.deliver(shard.value, std::move(own), folds ? fold_ : nullptr);
    }
    leaves_.at(static_cast<size_t>(shard.value)) = std::move(leaf);
  }

  void reduce() override {
    std::vector<TreeNode> nodes;
    for (const auto& [first, entry] : tree_.remaining()) nodes.push_back(entry.node);
    std::vector<const float*> pointers(nodes.size());
    for (size_t group = next_group_++; group < blocks_.groups.size(); group = next_group_++) {
      for (size_t b = blocks_.groups[group].first; b < blocks_.groups[group].last; ++b) {
        const Block& block = blocks_.blocks[b];
        size_t at = 0;
        for (const auto& [first, entry] : tree_.remaining()) {
          const float* values = values_of(entry.value, block.parameter);
          pointers[at++] = values == nullptr ? nullptr : values + block.begin;
        }
        tree_sum(nodes, pointers, block.end - block.begin,
                 gradients_[block.parameter].mutable_data_ptr<float>() + block.begin);
      }
    }
  }

  Reduced reduced() override {
    Reduced reduced;
    reduced.present.assign(gradients_.size(), false);
    for (const auto& [first, entry] : tree_.remaining()) {
      for (size_t p = 0; p < entry.value.size(); ++p)
        reduced.present[p] = reduced.present[p] || entry.value[p].defined();
    }
    tree_.begin(0);  // frees the gradients
    std::vector<TreeNode> places;
    for (size_t s = 0; s < leaves_.size(); ++s) places.push_back({0, static_cast<int64_t>(s)});
    const auto merge = [](Contribution left, Contribution right) {
      add(left, std::move(right));
      return left;
    };
    if (auto sums = tree_merge(places, std::move(leaves_), merge)) reduced.sums = std::move(*sums);
    reduced.control_message = std::move(control_message_);
    return reduced;
  }

 private:
  const int64_t held_bytes_;
  const FoldingTree<Gradients>::Fold fold_ = sum_of_siblings;
  bool folds_ = false;
  std::vector<std::optional<Contribution>> leaves_;  // without their gradients, which are in tree_
  FoldingTree<Gradients> tree_;
  std::vector<torch::Tensor> gradients_;
  Blocks blocks_;
  std::string control_message_;
  std::atomic<int64_t> next_{0};
  std::atomic<size_t> next_group_{0};
};

}  // namespace

std::unique_ptr<Reducer> make_local_reducer(int64_t held_bytes) {
  return std::make_unique<LocalReducer>(held_bytes);
}

}  // namespace sinew::train
