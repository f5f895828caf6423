#include "base/tree.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

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
      if (shard->value == 1) {
        reducer->deliver(*shard, std::nullopt);
        continue;
      }
      Contribution leaf;
      leaf.gradients = {torch::full({3}, static_cast<float>(shard->value + 1))};
      leaf.loss = 0.1 * static_cast<double>(shard->value);
      leaf.samples = 2;
      leaf.scores = {static_cast<float>(shard->value)};
      total += static_cast<double>(shard->value + 1);
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

TEST(Contributions, AnIntegerBufferThatChangedDifferentlyIsRefused) {
  Contribution one, same, other;
  one.buffers = {torch::tensor(int64_t{1})};
  same.buffers = {torch::tensor(int64_t{1})};
  other.buffers = {torch::tensor(int64_t{2})};
  EXPECT_NO_THROW(add(one, std::move(same)));
  EXPECT_EQ(one.buffers[0].item<int64_t>(), 1);  // the equal deltas of two shards count once
  EXPECT_THROW(add(one, std::move(other)), Error);
}

TEST(Lanes, ComputeTheSameWhateverTheProgramHasSet) {
  at::autocast::set_autocast_cache_enabled(true);
  at::globalContext().setFlushDenormal(true);  // new threads inherit this
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
