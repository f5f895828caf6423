#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "train/train.h"

namespace sinew::train {
namespace {

// The tree as its definition says: recursive, over absent leaves too.
std::optional<float> reference(const std::vector<std::optional<float>>& leaves, size_t first, size_t width) {
  if (first >= leaves.size()) return std::nullopt;
  if (width == 1) return leaves[first];
  const auto left = reference(leaves, first, width / 2), right = reference(leaves, first + width / 2, width / 2);
  if (left && right) return *left + *right;
  return left ? left : right;
}

TEST(Tree, EqualsItsDefinitionForEveryNumberOfShards) {
  RandomStream random(random_key({1}));
  for (size_t shards = 1; shards <= 70; ++shards) {
    for (const double absent : {0.0, 0.3, 0.9}) {
      for (const int64_t n : {1, 5, 2048, 5000}) {
        std::vector<std::vector<float>> values(shards);
        std::vector<const float*> pointers(shards, nullptr);
        bool any = false;
        for (size_t s = 0; s < shards; ++s) {
          if (random.uniform() < absent) continue;
          for (int64_t i = 0; i < n; ++i)
            values[s].push_back(static_cast<float>(random.normal() * std::exp(5 * random.normal())));
          pointers[s] = values[s].data();
          any = true;
        }
        std::vector<float> out(static_cast<size_t>(n), -77.0F);
        ASSERT_EQ(tree_sum(pointers, n, out.data()), any);
        size_t width = 1;
        while (width < shards) width *= 2;
        for (int64_t i = 0; i < n; i += n / 3 + 1) {
          std::vector<std::optional<float>> leaves(shards);
          for (size_t s = 0; s < shards; ++s) {
            if (pointers[s] != nullptr) leaves[s] = pointers[s][i];
          }
          ASSERT_EQ(reference(leaves, 0, width).value_or(-77.0F), out[static_cast<size_t>(i)]) << shards << ' ' << i;
        }
      }
    }
  }
}

TEST(Tree, AnAbsentLeafIsNotAZero) {
  const float minus_zero = -0.0F, zero = 0.0F;
  float out = 1;
  tree_sum({&minus_zero, nullptr}, 1, &out);
  EXPECT_TRUE(std::signbit(out));
  tree_sum({&minus_zero, &zero}, 1, &out);
  EXPECT_FALSE(std::signbit(out));
}

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
