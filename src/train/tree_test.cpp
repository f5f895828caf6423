#include <gtest/gtest.h>

#include <algorithm>

#include "train/train.h"

namespace sinew::train {
namespace {

TEST(LocalReducer, SumsSmallThingsByTheSameTreeAndGathersInShardOrder) {
  const auto reducer = make_local_reducer();
  for (const int64_t shards : {1, 2, 3, 7, 8, 12}) {
    const torch::Tensor out = torch::zeros({3});
    reducer->begin(shards, {out}, "");
    double total = 0;
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
    const Reducer::Root root = reducer->root();
    EXPECT_EQ(out[0].item<float>(), static_cast<float>(total));
    EXPECT_EQ(root.sums.samples, 2 * (shards - (shards > 1 ? 1 : 0)));
    EXPECT_TRUE(std::is_sorted(root.sums.scores.begin(), root.sums.scores.end()));
    EXPECT_TRUE(root.present[0]);
  }
}

}  // namespace
}  // namespace sinew::train
