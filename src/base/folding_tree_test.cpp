#include "base/folding_tree.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "base/random.h"

namespace sinew {
namespace {

using Text = std::optional<std::string>;  // nullopt: an absent value

std::string pair_of(const std::string& left, const std::string& right) {
  return "(" + left + " " + right + ")";
}

// The definition of the tree, spelled out: a node (level, index) has two children, and an absent value adds nothing.
Text plain(const std::vector<Text>& leaves, int level, int64_t index) {
  const TreeNode node{level, index};
  if (node.begin() >= static_cast<int64_t>(leaves.size())) return std::nullopt;
  if (level == 0) return leaves[static_cast<size_t>(index)];
  const Text left = plain(leaves, level - 1, 2 * index), right = plain(leaves, level - 1, 2 * index + 1);
  if (left && right) return pair_of(*left, *right);
  return left ? left : right;
}

Text plain(const std::vector<Text>& leaves) {
  int level = 0;
  while ((size_t{1} << level) < leaves.size()) ++level;
  return plain(leaves, level, 0);
}

// Counts how many of its instances hold memory.
struct Counted {
  Counted(Text text_given, std::atomic<int64_t>* live_given) : text(std::move(text_given)), live(live_given) {
    ++*live;
  }
  Counted(Counted&& other) noexcept : text(std::move(other.text)), live(std::exchange(other.live, nullptr)) {}
  Counted& operator=(Counted&& other) noexcept {
    if (live != nullptr) --*live;
    text = std::move(other.text);
    live = std::exchange(other.live, nullptr);
    return *this;
  }
  ~Counted() {
    if (live != nullptr) --*live;
  }
  Text text;
  std::atomic<int64_t>* live;
};

// Adds the values in the order of the tree, into the memory of one of them, as train/ does.
Counted fold(std::vector<Counted> values) {
  std::vector<TreeNode> nodes;
  std::vector<Text> texts;
  for (size_t i = 0; i < values.size(); ++i) {
    nodes.push_back({0, static_cast<int64_t>(i)});
    texts.push_back(values[i].text);
  }
  Counted sum = std::move(values[0]);
  sum.text = tree_merge(nodes, std::move(texts), pair_of);
  return sum;
}

Text sum_of_remaining(const FoldingTree<Counted>& tree) {
  std::vector<TreeNode> nodes;
  std::vector<Text> texts;
  for (const auto& [first, entry] : tree.remaining()) {
    nodes.push_back(entry.node);
    texts.push_back(entry.value.text);
  }
  EXPECT_TRUE(nodes.empty() || cover_exactly(nodes, nodes.back().begin() + 1));
  return tree_merge(nodes, std::move(texts), pair_of);
}

std::vector<Text> random_leaves(RandomStream& random, size_t count) {
  std::vector<Text> leaves(count);
  const bool all = random.below(2) == 0;
  for (size_t i = 0; i < count; ++i) {
    if (all || random.below(4) != 0) leaves[i] = std::to_string(i);
  }
  return leaves;
}

// Computes the leaves as lanes do: each lane takes the next leaf, and `finish` chooses which lane delivers next.
// Returns the highest number of values that were alive at once, including those that a lane computes.
template <typename Finish>
int64_t deliver_all(FoldingTree<Counted>& tree, const std::vector<Text>& leaves, size_t lanes, const Finish& finish) {
  std::atomic<int64_t> live{0};
  int64_t most = 0;
  tree.begin(static_cast<int64_t>(leaves.size()));
  std::vector<std::pair<int64_t, Counted>> under_way;
  size_t next = 0;
  while (next < leaves.size() || !under_way.empty()) {
    while (next < leaves.size() && under_way.size() < lanes) {
      under_way.emplace_back(static_cast<int64_t>(next), Counted(leaves[next], &live));
      ++next;
    }
    most = std::max<int64_t>(most, live);
    const auto done = under_way.begin() + static_cast<std::ptrdiff_t>(finish(under_way.size()));
    auto [leaf, value] = std::move(*done);
    under_way.erase(done);
    tree.deliver(leaf, std::move(value), next < leaves.size() ? FoldingTree<Counted>::Fold(fold) : nullptr);
  }
  EXPECT_EQ(sum_of_remaining(tree), plain(leaves)) << leaves.size() << " leaves, " << lanes << " lanes";
  tree.begin(0);
  EXPECT_EQ(live, 0);
  return most;
}

int64_t levels_of(size_t leaves) {
  int64_t levels = 0;
  while ((size_t{1} << (2 * levels)) < leaves) ++levels;
  return levels;
}

TEST(FoldingTree, AnyOrderOfArrivalGivesTheTreesOrderOfAdditions) {
  RandomStream random(random_key({41}));
  for (int trial = 0; trial < 3000; ++trial) {
    const size_t count = 1 + random.below(trial % 10 == 0 ? 300 : 40), lanes = 1 + random.below(12);
    FoldingTree<Counted> tree;
    const auto leaves = random_leaves(random, count);
    const int64_t most = deliver_all(tree, leaves, lanes, [&](size_t under_way) { return random.below(under_way); });
    // A value waits only until the other values of its group of four arrive. On each folded level, at most three values
    // wait behind each lane, and three behind the leaves that no lane has taken.
    const auto paths = static_cast<int64_t>(lanes) + 1;
    EXPECT_LE(most, static_cast<int64_t>(lanes) + paths * 3 * levels_of(count)) << count << ' ' << lanes;
    EXPECT_LE(most, static_cast<int64_t>(count));
  }
}

TEST(FoldingTree, HoldsFewValuesIfTheyComeAboutInOrder) {
  RandomStream random(random_key({42}));
  for (const size_t count : {1U, 7U, 8U, 64U, 100U, 1024U, 4096U}) {
    for (const size_t lanes : {1U, 2U, 4U, 16U}) {
      FoldingTree<Counted> tree;
      const auto leaves = random_leaves(random, count);
      const int64_t most = deliver_all(tree, leaves, lanes, [](size_t) { return 0; });
      EXPECT_LE(most, static_cast<int64_t>(lanes) + 3 * levels_of(count)) << count << ' ' << lanes;
    }
  }
}

TEST(FoldingTree, ThreadsDeliverSideBySide) {
  RandomStream random(random_key({43}));
  for (int trial = 0; trial < 20; ++trial) {
    const auto leaves = random_leaves(random, 200);
    std::atomic<int64_t> live{0};
    std::atomic<size_t> next{0};
    FoldingTree<Counted> tree;
    tree.begin(static_cast<int64_t>(leaves.size()));
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < 4; ++lane) {
      lanes.emplace_back([&] {
        for (size_t leaf = next++; leaf < leaves.size(); leaf = next++)
          tree.deliver(static_cast<int64_t>(leaf), Counted(leaves[leaf], &live), fold);
      });
    }
    for (std::thread& lane : lanes) lane.join();
    EXPECT_EQ(sum_of_remaining(tree), plain(leaves));
    EXPECT_EQ(tree.remaining().size(), 1U);
  }
}

}  // namespace
}  // namespace sinew
