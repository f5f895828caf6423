#include "base/tree.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/random.h"
#include "train/lanes.h"
#include "train/train.h"

namespace sinew::train {
namespace {

TEST(LocalReducer, AddsSumsInTheTreeAndGathersScoresInShardOrder) {
  const auto reducer = make_local_reducer();
  for (const int64_t shards : {1, 2, 3, 7, 8, 12}) {
    const torch::Tensor out = torch::zeros({3});
    reducer->begin(shards, {out}, "");
    double total = 0;
    std::vector<TreeNode> nodes;
    std::vector<std::optional<double>> losses;
    for (int64_t shard = 0; shard < shards; ++shard) {
      nodes.push_back({0, shard});
      losses.push_back(shard == 1 ? std::nullopt : std::optional(0.1 * static_cast<double>(shard)));
    }
    while (const auto shard = reducer->next_shard()) {
      if (shard->shard.value == 1) {
        reducer->deliver(*shard, std::nullopt);
        continue;
      }
      Contribution leaf;
      leaf.gradients = {torch::full({3}, static_cast<float>(shard->shard.value + 1))};
      leaf.loss = 0.1 * static_cast<double>(shard->shard.value);
      leaf.samples = 2;
      leaf.scores = {static_cast<float>(shard->shard.value)};
      total += static_cast<double>(shard->shard.value + 1);
      reducer->deliver(*shard, std::move(leaf));
    }
    reducer->reduce();
    const Reducer::Reduced reduced = reducer->reduced();
    EXPECT_EQ(out[0].item<float>(), static_cast<float>(total));
    EXPECT_EQ(reduced.sums.loss, tree_merge(nodes, losses, std::plus<>()));  // bits depend on the order of additions
    EXPECT_EQ(reduced.sums.samples, 2 * (shards - (shards > 1 ? 1 : 0)));
    EXPECT_TRUE(std::is_sorted(reduced.sums.scores.begin(), reduced.sums.scores.end()));
    EXPECT_TRUE(reduced.present[0]);
  }
}

// Spells out the definition of the tree: a node has two children, and an absent gradient adds nothing.
torch::Tensor plain_sum(const std::vector<torch::Tensor>& leaves, size_t first, size_t width) {
  if (first >= leaves.size()) return {};
  if (width == 1) return leaves[first];
  const torch::Tensor left = plain_sum(leaves, first, width / 2),
                      right = plain_sum(leaves, first + width / 2, width / 2);
  if (left.defined() && right.defined()) return left + right;
  return left.defined() ? left : right;
}

// Tells how much of the memory of delivered gradients is still in use.
class Watched {
 public:
  void add(const torch::Tensor& tensor) { memory_.emplace_back(tensor.storage().getWeakStorageImpl()); }
  int64_t live() const {
    return std::ranges::count_if(memory_, [](const auto& memory) { return memory.use_count() > 0; });
  }

 private:
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> memory_;
};

constexpr int64_t kSizes[] = {20'000, 3, 16'384};  // the second is smaller than a block

std::vector<torch::Tensor> clones(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.defined() ? tensor.clone() : tensor);
  return copies;
}

// Returns the gradients of each shard. Some gradients are absent, and some shards have none at all.
std::vector<std::vector<torch::Tensor>> random_gradients(RandomStream& random, int64_t shards) {
  std::vector<std::vector<torch::Tensor>> all(static_cast<size_t>(shards));
  for (auto& gradients : all) {
    if (random.below(8) == 0) continue;
    for (const int64_t size : kSizes)
      gradients.push_back(random.below(6) == 0 ? torch::Tensor()
                                               : torch::sin(torch::arange(size) * (1 + random.uniform())) * 1e3);
  }
  return all;
}

TEST(LocalReducer, AddsGradientsInTheTreeInAnyOrderOfArrival) {
  become_lane();  // one thread adds, because other threads would only wait for cores
  RandomStream random(random_key({44}));
  const std::unique_ptr<Reducer> reducers[] = {make_local_reducer(), make_local_reducer(0)};  // the second one folds
  std::vector<torch::Tensor> out;
  for (const int64_t size : kSizes) out.push_back(torch::zeros({size}));
  for (int trial = 0; trial < 60; ++trial) {
    const auto shards = static_cast<int64_t>(1 + random.below(40)), lanes = static_cast<int64_t>(1 + random.below(6));
    const auto given = random_gradients(random, shards);
    Reducer* reducer = reducers[trial % 2].get();
    for (torch::Tensor& tensor : out) tensor.fill_(-1);
    reducer->begin(shards, out, "");
    std::vector<ShardIndex> under_way;
    for (;;) {
      while (static_cast<int64_t>(under_way.size()) < lanes) {
        const auto shard = reducer->next_shard();
        if (!shard) break;
        under_way.push_back(*shard);
      }
      if (under_way.empty()) break;
      const auto done = under_way.begin() + static_cast<std::ptrdiff_t>(random.below(under_way.size()));
      const auto& gradients = given[static_cast<size_t>(done->value)];
      std::optional<Contribution> leaf;
      if (!gradients.empty()) leaf.emplace().gradients = clones(gradients);
      reducer->deliver(*done, std::move(leaf));
      under_way.erase(done);
    }
    reducer->reduce();
    const Reducer::Reduced reduced = reducer->reduced();
    for (size_t p = 0; p < out.size(); ++p) {
      std::vector<torch::Tensor> leaves;
      for (const auto& gradients : given) leaves.push_back(gradients.empty() ? torch::Tensor() : gradients[p]);
      const torch::Tensor sum = plain_sum(leaves, 0, 64);
      ASSERT_EQ(reduced.present[p], sum.defined());
      ASSERT_TRUE(torch::equal(out[p], sum.defined() ? sum : torch::full_like(out[p], -1))) << shards << ' ' << lanes;
    }
  }
}

TEST(LocalReducer, HoldsFewGradientsOfManyShards) {
  const auto reducer = make_local_reducer(0);
  const torch::Tensor out = torch::zeros({40'000});
  reducer->begin(256, {out}, "");
  Watched watched;
  int64_t most = 0;
  while (const auto shard = reducer->next_shard()) {
    Contribution leaf;
    leaf.gradients = {torch::ones({40'000})};
    watched.add(leaf.gradients[0]);
    most = std::max(most, watched.live());
    reducer->deliver(*shard, std::move(leaf));
  }
  EXPECT_LE(most, 1 + 3 * 4);  // one lane, and three gradients for each of the four levels that are folded
  reducer->reduce();
  reducer->reduced();
  EXPECT_EQ(watched.live(), 0);
  EXPECT_EQ(out.sum().item<float>(), 256.0F * 40'000);
}

// Autograd may give two parameters the same gradient tensor, and a module may keep one. The reducer must not change
// memory that others use.
TEST(LocalReducer, NeverWritesIntoMemoryThatOthersUse) {
  const auto reducer = make_local_reducer(0);
  const std::vector<torch::Tensor> out = {torch::zeros({40'000}), torch::zeros({40'000})};
  reducer->begin(9, out, "");
  std::vector<torch::Tensor> kept;
  while (const auto shard = reducer->next_shard()) {
    const torch::Tensor shared = torch::full({40'000}, static_cast<float>(shard->shard.value + 1));
    Contribution leaf;
    leaf.gradients = {shared, shard->shard.value == 2 ? shared.view({40'000}) : shared};
    if (shard->shard.value % 3 == 0) kept.push_back(shared);
    reducer->deliver(*shard, std::move(leaf));
  }
  reducer->reduce();
  reducer->reduced();
  for (const torch::Tensor& sum : out) EXPECT_TRUE(torch::equal(sum, torch::full({40'000}, 45.0F)));
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(torch::equal(kept[i], torch::full({40'000}, static_cast<float>(3 * i + 1))));
}

TEST(Contributions, TheSumSaysThatAnIntegerBufferChangedDifferently) {
  Contribution one, same, other, more;
  one.buffers = {torch::tensor(int64_t{1})};
  same.buffers = {torch::tensor(int64_t{1})};
  other.buffers = {torch::tensor(int64_t{2})};
  add(one, std::move(same));
  EXPECT_EQ(one.buffers[0].item<int64_t>(), 1);  // the equal deltas of two shards count once
  EXPECT_FALSE(one.buffers_conflict);
  add(one, std::move(other));
  EXPECT_TRUE(one.buffers_conflict);
  add(more, std::move(one));
  EXPECT_TRUE(more.buffers_conflict);
}

TEST(Lanes, ComputeTheSameWhateverTheProgramHasSet) {
  at::autocast::set_autocast_cache_enabled(true);
  at::globalContext().setFlushDenormal(true);  // new threads inherit this setting
  Lanes lanes(3);
  lanes.run([](int lane) {
    EXPECT_EQ(at::get_num_threads(), 1) << lane;
    EXPECT_FALSE(at::autocast::is_autocast_cache_enabled()) << lane;
    volatile float tiny = 1e-40F;
    EXPECT_NE(tiny * 1.0F, 0.0F) << lane;
  });
}

}  // namespace
}  // namespace sinew::train
