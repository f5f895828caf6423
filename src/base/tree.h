// The fixed binary tree over leaves, which defines the order of all additions.
//
// train/ uses it to add over the lanes of one process, group/ to add over the members of a group. Node (level, i)
// covers those of the leaves [i * 2^level, (i+1) * 2^level) that exist. An absent leaf is not a zero: absent + x is x,
// bit for bit. So the sum of a node depends on its leaves alone. Any set of nodes that covers each leaf once gives the
// sum of the root: tree_sum of leaves, of nodes, and of nodes of nodes agree to the last bit. Any thread may call these
// functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sinew {

struct TreeNode {
  int level = 0;
  int64_t index = 0;

  int64_t begin() const { return index << level; }  // index of its first leaf
  int64_t end(int64_t leaves) const { return std::min(leaves, (index + 1) << level); }
  bool operator==(const TreeNode&) const = default;
};

constexpr int kTreeLevels = 20;
// The largest number of leaves for which every function of this file accepts every set of nodes, including the root.
constexpr int64_t kMaxTreeLeaves = int64_t{1} << (kTreeLevels - 2);

// Returns the largest nodes that together cover exactly the leaves for which `mine` is true, from left to right.
std::vector<TreeNode> maximal_nodes(const std::vector<bool>& mine);

// Returns whether these nodes, in this order, cover each leaf exactly once.
bool cover_exactly(const std::vector<TreeNode>& nodes, int64_t leaves);

// Adds leaves of n numbers each; a null pointer is an absent leaf. Writes the sum to `out`. Returns false and does not
// touch `out` if all leaves are absent.
bool tree_sum(const std::vector<const float*>& leaves, int64_t n, float* out);

// Adds the sums of nodes that cover all leaves in order. A null sum means that all leaves below the node are absent.
bool tree_sum(const std::vector<TreeNode>& nodes, const std::vector<const float*>& sums, int64_t n, float* out);

// Like tree_sum, but for values of any type and any number of leaves. merge(left, right) returns the parent's value;
// nullopt is an absent value.
template <typename Value, typename Merge>
std::optional<Value> tree_merge(const std::vector<TreeNode>& nodes, std::vector<std::optional<Value>> values,
                                const Merge& merge) {
  const auto join = [&](std::optional<Value>& left, std::optional<Value> right) {
    if (left && right) return std::optional<Value>(merge(std::move(*left), std::move(*right)));
    return left ? std::move(left) : std::move(right);
  };
  constexpr int kLevels = 62;
  std::optional<Value> waiting[kLevels];  // for each level: a left child that waits for its right sibling
  int64_t covered = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto [level, index] = nodes[i];
    SINEW_CHECK(level < kTreeLevels - 1 && nodes[i].begin() == covered, level, index, covered);
    covered = (index + 1) << level;
    std::optional<Value> value = std::move(values.at(i));
    for (; (index & 1) != 0; index >>= 1, ++level) value = join(waiting[level], std::move(value));
    waiting[level] = std::move(value);
  }
  std::optional<Value> root;  // joins the nodes without right siblings, from the lowest level up
  for (int level = 0; level < kLevels; ++level) {
    if (((covered >> level) & 1) != 0) root = join(waiting[level], std::move(root));
  }
  return root;
}

}  // namespace sinew
