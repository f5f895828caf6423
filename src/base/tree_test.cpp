#include "base/tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "base/random.h"

namespace sinew {
namespace {

// The definition of the tree, by recursion, with absent leaves.
std::optional<float> reference(const std::vector<std::optional<float>>& leaves, size_t first, size_t width) {
  if (first >= leaves.size()) return std::nullopt;
  if (width == 1) return leaves[first];
  const auto left = reference(leaves, first, width / 2), right = reference(leaves, first + width / 2, width / 2);
  if (left && right) return *left + *right;
  return left ? left : right;
}

struct Leaves {
  std::vector<std::vector<float>> values;
  std::vector<const float*> pointers;
  bool any = false;
};

Leaves random_leaves(RandomStream& random, size_t shards, int64_t n, double absent) {
  Leaves leaves{std::vector<std::vector<float>>(shards), std::vector<const float*>(shards, nullptr)};
  for (size_t s = 0; s < shards; ++s) {
    if (random.uniform() < absent) continue;
    for (int64_t i = 0; i < n; ++i)
      leaves.values[s].push_back(static_cast<float>(random.normal() * std::exp(5 * random.normal())));
    leaves.pointers[s] = leaves.values[s].data();
    leaves.any = true;
  }
  return leaves;
}

TEST(Tree, EqualsItsDefinitionForEveryNumberOfShards) {
  RandomStream random(random_key({1}));
  for (size_t shards = 1; shards <= 70; ++shards) {
    for (const double absent : {0.0, 0.3, 0.9}) {
      for (const int64_t n : {1, 5, 2048, 5000}) {
        const Leaves given = random_leaves(random, shards, n, absent);
        std::vector<float> out(static_cast<size_t>(n), -77.0F);
        ASSERT_EQ(tree_sum(given.pointers, n, out.data()), given.any);
        size_t width = 1;
        while (width < shards) width *= 2;
        for (int64_t i = 0; i < n; i += n / 3 + 1) {
          std::vector<std::optional<float>> leaves(shards);
          for (size_t s = 0; s < shards; ++s) {
            if (given.pointers[s] != nullptr) leaves[s] = given.pointers[s][i];
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

// Each member adds its shards up to its maximal nodes. The sum of all these nodes equals the sum of all leaves.
TEST(Tree, TheSumOfNodesIsTheSumOfLeavesHoweverTheShardsAreSpread) {
  RandomStream random(random_key({2}));
  for (int trial = 0; trial < 1500; ++trial) {
    const size_t shards = 1 + random.below(40), members = 1 + random.below(5);
    const int64_t n = random.below(20) == 0 ? 2500 : 3;
    const Leaves leaves = random_leaves(random, shards, n, trial % 3 == 0 ? 0.0 : 0.4);
    const bool runs = random.below(2) == 0;
    std::vector<size_t> owner(shards);
    for (size_t s = 0; s < shards; ++s) owner[s] = runs ? s * members / shards : random.below(members);
    struct Part {
      TreeNode node;
      std::vector<float> sum;
      bool present;
    };
    std::vector<Part> parts;
    for (size_t m = 0; m < members; ++m) {
      std::vector<bool> mine(shards);
      for (size_t s = 0; s < shards; ++s) mine[s] = owner[s] == m;
      for (const TreeNode node : maximal_nodes(mine)) {
        Part part{node, std::vector<float>(static_cast<size_t>(n)), false};
        const auto begin = leaves.pointers.begin();
        part.present =
            tree_sum({begin + node.begin(), begin + node.end(static_cast<int64_t>(shards))}, n, part.sum.data());
        parts.push_back(std::move(part));
      }
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.node.begin() < b.node.begin(); });
    std::vector<TreeNode> nodes;
    std::vector<const float*> sums;
    for (const Part& part : parts) {
      nodes.push_back(part.node);
      sums.push_back(part.present ? part.sum.data() : nullptr);
    }
    ASSERT_TRUE(cover_exactly(nodes, static_cast<int64_t>(shards)));
    std::vector<float> whole(static_cast<size_t>(n), -77.0F), from_nodes = whole;
    ASSERT_EQ(tree_sum(leaves.pointers, n, whole.data()), leaves.any);
    ASSERT_EQ(tree_sum(nodes, sums, n, from_nodes.data()), leaves.any);
    ASSERT_EQ(std::memcmp(whole.data(), from_nodes.data(), whole.size() * sizeof(float)), 0) << shards << ' ' << trial;
  }
}

TEST(Tree, MaximalNodesAreMaximalAndCoverExactlyTheGivenLeaves) {
  RandomStream random(random_key({3}));
  for (int trial = 0; trial < 3000; ++trial) {
    const auto shards = static_cast<int64_t>(1 + random.below(33));
    const double share = random.uniform();
    std::vector<bool> mine(static_cast<size_t>(shards)), covered(mine.size());
    for (size_t s = 0; s < mine.size(); ++s) mine[s] = random.uniform() < share;
    for (const TreeNode node : maximal_nodes(mine)) {
      ASSERT_LT(node.begin(), node.end(shards));
      for (int64_t s = node.begin(); s < node.end(shards); ++s) {
        ASSERT_FALSE(covered[static_cast<size_t>(s)]);
        covered[static_cast<size_t>(s)] = true;
      }
      const TreeNode parent{node.level + 1, node.index / 2};
      bool whole = true;
      for (int64_t s = parent.begin(); s < parent.end(shards); ++s) whole = whole && mine[static_cast<size_t>(s)];
      ASSERT_TRUE(!whole ||
                  (parent.begin() == 0 && node.end(shards) == shards));  // otherwise the parent would be maximal
    }
    ASSERT_EQ(covered, mine);
  }
}

TEST(Tree, MergesAnyValueInTheSameOrder) {
  const auto merge = [](std::string left, const std::string& right) { return "(" + left + right + ")"; };
  using Values = std::vector<std::optional<std::string>>;
  const std::vector<TreeNode> leaves = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}};
  EXPECT_EQ(tree_merge(leaves, Values{"a", "b", "c", "d", "e", "f", "g"}, merge), "(((ab)(cd))((ef)g))");
  EXPECT_EQ(tree_merge(leaves, Values{"a", {}, {}, {}, "e", "f", {}}, merge), "(a(ef))");
  EXPECT_EQ(tree_merge(leaves, Values(7), merge), std::nullopt);
  EXPECT_EQ(tree_merge({{1, 0}, {0, 2}, {0, 3}, {2, 1}}, Values{"x", "c", "d", "z"}, merge), "((x(cd))z)");
  EXPECT_EQ(tree_merge({}, Values{}, merge), std::nullopt);
}

TEST(Tree, CoverExactlyRefusesHolesDoublesAndWrongOrder) {
  EXPECT_TRUE(cover_exactly({{1, 0}, {1, 1}}, 3));
  EXPECT_TRUE(cover_exactly({{0, 0}}, 1));
  EXPECT_FALSE(cover_exactly({{1, 0}}, 3));
  EXPECT_FALSE(cover_exactly({{1, 1}, {1, 0}}, 3));
  EXPECT_FALSE(cover_exactly({{1, 0}, {0, 1}, {0, 2}}, 3));
  EXPECT_FALSE(cover_exactly({{1, 0}, {1, 1}, {1, 2}}, 3));
  EXPECT_FALSE(cover_exactly({{0, 0}, {0, int64_t{1} << 60}}, 3));
  EXPECT_FALSE(cover_exactly({{63, 0}}, 3));
  EXPECT_FALSE(cover_exactly({}, 1));
}

}  // namespace
}  // namespace sinew
