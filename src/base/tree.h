// The fixed binary tree over leaves: the one order in which everything is added, wherever it is added.
//
// For train/ (lanes of one process) and group/ (members that each add a part). Node (level, i) covers leaves
// [i * 2^level, (i+1) * 2^level); at the ragged right edge only those there are. An absent leaf is not a zero: absent +
// x is x, bit for bit. So the sum of a node is a function of its leaves, and the root that of any nodes that cover all
// leaves once: tree_sum of leaves, of nodes, of nodes of nodes are the same to the last bit. May be called from any
// thread.
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

  int64_t begin() const { return index << level; }  // its first leaf
  int64_t end(int64_t leaves) const { return std::min(leaves, (index + 1) << level); }
  bool operator==(const TreeNode&) const = default;
};

constexpr int kTreeLevels = 20;  // a root is at a lower level: half a million leaves

// The largest nodes that together cover exactly the leaves that are `mine`, from left to right.
std::vector<TreeNode> maximal_nodes(const std::vector<bool>& mine);

// Do these, in this order, cover each of the leaves exactly once?
bool cover_exactly(const std::vector<TreeNode>& nodes, int64_t leaves);

// Adds the leaves (null: absent). Writes n numbers to out; returns false (out untouched) when all are absent.
bool tree_sum(const std::vector<const float*>& leaves, int64_t n, float* out);

// The same from the sums of nodes that cover all leaves exactly, in order (null: all leaves below are absent).
bool tree_sum(const std::vector<TreeNode>& nodes, const std::vector<const float*>& sums, int64_t n, float* out);

// The same for any value: merge(left, right) is the parent's. nullopt: absent.
template <typename Value, typename Merge>
std::optional<Value> tree_merge(const std::vector<TreeNode>& nodes, std::vector<std::optional<Value>> values,
                                const Merge& merge) {
  const auto join = [&](std::optional<Value>& left, std::optional<Value> right) {
    if (left && right) return std::optional<Value>(merge(std::move(*left), std::move(*right)));
    return left ? std::move(left) : std::move(right);
  };
  std::optional<Value> waiting[kTreeLevels];  // by level: a left child without its right sibling
  int64_t covered = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto [level, index] = nodes[i];
    SINEW_CHECK(level < kTreeLevels - 1 && nodes[i].begin() == covered, level, index, covered);
    covered = (index + 1) << level;
    std::optional<Value> value = std::move(values.at(i));
    for (; (index & 1) != 0; index >>= 1, ++level) value = join(waiting[level], std::move(value));
    waiting[level] = std::move(value);
  }
  std::optional<Value> root;  // what waits for siblings that do not exist is joined from the lowest up
  for (int level = 0; level < kTreeLevels; ++level) {
    if (((covered >> level) & 1) != 0) root = join(waiting[level], std::move(root));
  }
  return root;
}

}  // namespace sinew
