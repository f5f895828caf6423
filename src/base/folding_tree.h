// Collects the values of leaves that come in any order, and folds siblings into their parent as soon as the last of
// them is there. train/ keeps the gradients of a step in one, so its memory grows with the number of lanes and hardly
// with the number of shards.
//
// The tree is that of base/tree.h. Only every second level is folded: up to four siblings at once. A sum of four reads
// each of them once and writes one; adding two at a time would also write and read the sums of the pairs. Any thread
// may call deliver(). The other functions need that no thread delivers.
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
  // Returns the value of the node of level 2 whose leaves are these, from left to right. There may be fewer than four.
  using Fold = std::function<Value(std::vector<Value> leaves)>;

  void begin(int64_t leaves) {
    leaves_ = leaves;
    remaining_.clear();
  }

  // Takes the value of a leaf; the same leaf only once. With a `fold`, calls it, on this thread, for the nodes that
  // this leaf completes. Without one, the value stays as it is.
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
  // The nodes that are not folded, from left to right, by their first leaf. They cover all leaves exactly once all
  // leaves were delivered.
  const std::map<int64_t, Entry>& remaining() const { return remaining_; }

 private:
  static TreeNode parent_of(TreeNode node) { return {node.level + 2, node.index >> 2}; }

  // Whether all children of the node wait. The node above the root has the root as its only child: it never completes.
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
