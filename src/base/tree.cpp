#include "base/tree.h"

#include <algorithm>

namespace sinew {
namespace {

constexpr int64_t kTile = 2048;  // elements; a tile of every partial sum fits into the L1 cache

// Points to one tile of the sum of a tree node.
struct Sum {
  const float* values = nullptr;  // null if every leaf below the node is absent
  bool given = true;  // true: the caller owns the memory of `values`; false: it is a tile of Tiles, which is reused
};

// SINEW_CLONES is empty with ThreadSanitizer. The loader would choose a clone before ThreadSanitizer is initialised,
// and crash.
#if defined(__SANITIZE_THREAD__) || defined(__clang__)
#define SINEW_CLONES
#else
#define SINEW_CLONES __attribute__((target_clones("avx2", "default"), optimize("O3")))
#endif

// `out` may be `left` or `right`.
SINEW_CLONES void add_floats(const float* left, const float* right, float* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = left[i] + right[i];
}

Sum join(const Sum& left, const Sum& right, float* tile, int64_t n) {
  if (left.values != nullptr && right.values != nullptr) {
    add_floats(left.values, right.values, tile, n);
    return {tile, false};
  }
  const Sum& present = left.values != nullptr ? left : right;
  if (present.values == nullptr || present.given || present.values == tile) return present;
  std::copy_n(present.values, n, tile);  // moves the sum to the parent's tile: other sums will overwrite its own
  return {tile, false};
}

// Each level has two tiles: a left child waits in one while its right sibling is summed in the other.
struct Tiles {
  alignas(64) float sums[kTreeLevels][2][kTile];
  alignas(64) float last[kTile];
};

// Adds one tile of all leaves. If `nodes` is given, `sums` are the sums of these nodes instead of leaves.
Sum sum_tile(const std::vector<TreeNode>* nodes, const std::vector<const float*>& sums, int64_t first, int64_t n,
             Tiles& tiles) {
  Sum waiting[kTreeLevels];  // works like a binary counter: for each level, the node that waits for its right sibling
  int64_t covered = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    auto [level, index] = nodes != nullptr ? (*nodes)[i] : TreeNode{0, static_cast<int64_t>(i)};
    covered = (index + 1) << level;
    Sum sum = {sums[i] == nullptr ? nullptr : sums[i] + first, true};
    for (; (index & 1) != 0; index >>= 1, ++level) {
      sum = join(waiting[level], sum, tiles.sums[level + 1][(index >> 1) & 1], n);
    }
    waiting[level] = sum;
  }
  // The nodes that are left have no right siblings. They are joined upwards from the lowest level, whose node is the
  // rightmost.
  Sum root;
  for (int level = 0; level < kTreeLevels; ++level) {
    if (((covered >> level) & 1) != 0) root = join(waiting[level], root, tiles.last, n);
  }
  return root;
}

bool sum_tiles(const std::vector<TreeNode>* nodes, const std::vector<const float*>& sums, int64_t n, float* out) {
  if (std::all_of(sums.begin(), sums.end(), [](const float* sum) { return sum == nullptr; })) return false;
  thread_local Tiles tiles;
  for (int64_t first = 0; first < n; first += kTile) {
    const int64_t count = std::min(kTile, n - first);
    std::copy_n(sum_tile(nodes, sums, first, count, tiles).values, count, out + first);
  }
  return true;
}

void add_maximal(const std::vector<bool>& mine, const std::vector<int64_t>& before, TreeNode node,
                 std::vector<TreeNode>& found) {
  const auto leaves = static_cast<int64_t>(mine.size());
  if (node.begin() >= leaves) return;
  const int64_t end = node.end(leaves);
  const int64_t count = before[static_cast<size_t>(end)] - before[static_cast<size_t>(node.begin())];
  if (count == 0) return;
  if (count == end - node.begin()) return found.push_back(node);
  add_maximal(mine, before, {node.level - 1, node.index * 2}, found);
  add_maximal(mine, before, {node.level - 1, node.index * 2 + 1}, found);
}

}  // namespace

std::vector<TreeNode> maximal_nodes(const std::vector<bool>& mine) {
  SINEW_CHECK(mine.size() < (1U << (kTreeLevels - 1)), mine.size());
  std::vector<int64_t> before(mine.size() + 1, 0);  // before[i]: how many of the leaves to the left of leaf i are mine
  for (size_t i = 0; i < mine.size(); ++i) before[i + 1] = before[i] + (mine[i] ? 1 : 0);
  int level = 0;
  while ((size_t{1} << level) < mine.size()) ++level;
  std::vector<TreeNode> found;
  add_maximal(mine, before, {level, 0}, found);
  return found;
}

bool cover_exactly(const std::vector<TreeNode>& nodes, int64_t leaves) {
  int64_t covered = 0;
  for (const TreeNode& node : nodes) {
    if (node.level < 0 || node.level >= kTreeLevels - 1 || node.index < 0 || node.index > (leaves >> node.level))
      return false;
    if (covered >= leaves || node.begin() != covered) return false;
    covered = (node.index + 1) << node.level;
  }
  return covered >= leaves;
}

bool tree_sum(const std::vector<const float*>& leaves, int64_t n, float* out) {
  SINEW_CHECK(leaves.size() < (1U << (kTreeLevels - 1)), leaves.size());
  return sum_tiles(nullptr, leaves, n, out);
}

bool tree_sum(const std::vector<TreeNode>& nodes, const std::vector<const float*>& sums, int64_t n, float* out) {
  SINEW_CHECK(nodes.size() == sums.size(), nodes.size(), sums.size());
  SINEW_CHECK(nodes.empty() || cover_exactly(nodes, nodes.back().begin() + 1), nodes.size());
  return sum_tiles(&nodes, sums, n, out);
}

}  // namespace sinew
