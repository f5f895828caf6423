// Collects the values of leaves that come in any order. Folds the children of a node into one value as soon as the last
// of them has arrived. train/ keeps the gradients of a step in such a tree. So its memory grows with the number of
// lanes and hardly with the number of shards.
//
// The tree is that of base/tree.h, but only every second level is folded, so a fold takes up to four values. A sum of
// four reads each of them once and writes one result. Adding two at a time would also write and read the sums of the
// pairs. Any thread may call deliver(). Do not call the other functions while a thread is in deliver().
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/tree.h"

namespace sinew {

template <typename Value>
class FoldingTree {
 public:
  // Returns the value of a node from the values of its children, left to right. A node has up to four children, two
  // levels below it.
  using Fold = std::function<Value(std::vector<Value> leaves)>;

  void begin(int64_t leaves) {
    leaves_ = leaves;
    remaining_.clear();
  }

  // Takes the value of a leaf. Each leaf may be delivered only once. Calls `fold` on this thread for every node that
  // this leaf completes. If `fold` is empty, nothing is folded.
  void deliver(int64_t leaf, Value value, const Fold& fold) {
    SINEW_CHECK(leaf >= 0 && leaf < leaves_, leaf, leaves_);
    TreeNode node{0, leaf};
    std::unique_lock lock(mutex_);
    for (;;) {
      remaining_.emplace(node.begin(), Entry{node, std::move(value)});
      if (!fold || !is_complete(parent_of(node))) return;
      node = parent_of(node);
      std::vector<Value> children = take_children(node);
      lock.unlock();
      value = fold(std::move(children));
      lock.lock();
    }
  }

  struct Entry {
    TreeNode node;
    Value value;
  };
  // The values that were not folded further, by their first leaf from left to right. Once all leaves were delivered,
  // these nodes cover each leaf exactly once.
  const std::map<int64_t, Entry>& remaining() const { return remaining_; }

 private:
  static TreeNode parent_of(TreeNode node) { return {node.level + 2, node.index >> 2}; }

  // Returns whether the values of all children of the node have arrived. Returns false above the root, which ends the
  // folding.
  bool is_complete(TreeNode parent) const {
    const int64_t child_leaves = int64_t{1} << (parent.level - 2);
    if (child_leaves >= leaves_) return false;
    for (int64_t first = parent.begin(); first < parent.end(leaves_); first += child_leaves) {
      const auto found = remaining_.find(first);
      if (found == remaining_.end() || found->second.node.level != parent.level - 2) return false;
    }
    return true;
  }

  std::vector<Value> take_children(TreeNode parent) {
    const auto first = remaining_.lower_bound(parent.begin()), last = remaining_.lower_bound(parent.end(leaves_));
    std::vector<Value> children;
    for (auto child = first; child != last; ++child) children.push_back(std::move(child->second.value));
    remaining_.erase(first, last);
    return children;
  }

  std::mutex mutex_;
  int64_t leaves_ = 0;
  std::map<int64_t, Entry> remaining_;
};

}  // namespace sinew
