#include "group/summing.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::group {

namespace {

const float* row_of(const Leaf* leaf, const RowPart& part) {
  if (leaf == nullptr || leaf->rows.empty()) return nullptr;
  const float* row = leaf->rows[static_cast<size_t>(part.row)];
  return row == nullptr ? nullptr : row + part.offset;
}

std::vector<const float*> rows_of(const Summing& summing, const TreeNode& node, const RowPart& part) {
  std::vector<const float*> rows;
  for (int64_t s = node.begin(); s < node.end(summing.shape->shards); ++s) {
    rows.push_back(row_of(summing.leaves[static_cast<size_t>(s)], part));
  }
  return rows;
}

bool any(const std::vector<const float*>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const float* row) { return row != nullptr; });
}

}  // namespace

Payload sum_piece(const Summing& summing, const Piece& piece) {
  const auto parts = row_parts(*summing.shape, piece.begin, piece.end);
  std::vector<bool> present;
  for (const TreeNode& node : summing.nodes) {
    for (const RowPart& part : parts) present.push_back(any(rows_of(summing, node, part)));
  }
  const auto nodes = static_cast<int64_t>(summing.nodes.size());
  BlockDraft draft =
      draft_block({summing.shape->digest, piece.begin, piece.end, nodes, summing.pieces}, parts, present);
  for (size_t i = 0; i < present.size(); ++i) {
    const RowPart& part = parts[i % parts.size()];
    if (present[i]) tree_sum(rows_of(summing, summing.nodes[i / parts.size()], part), part.count, draft.values[i]);
  }
  return std::move(draft.bytes);
}

namespace {

// An input of the tree for a piece: a leaf of this member, or a node that another member sent.
struct Input {
  TreeNode node;
  const Leaf* leaf = nullptr;
  std::vector<const float*> sums;  // for each part of a row; set if another member sent the node
};

Fenced bad(const Summing& summing, MemberId from, const std::string& what) {
  return Fenced(member_name(from) + " sent, for collective " + std::to_string(summing.collective) + ", " + what);
}

// Returns the inputs of the tree, in order, or nullopt if a sender computes something else. Throws Fenced if a received
// block does not fit its sender's nodes.
std::optional<std::vector<Input>> inputs_of(const Summing& summing, const Piece& piece,
                                            const std::vector<RowPart>& parts, const std::vector<Sent>& sent) {
  std::vector<Input> inputs;
  for (int64_t s = 0; s < summing.shape->shards; ++s) {
    if (summing.mine[static_cast<size_t>(s)]) inputs.push_back({{0, s}, summing.leaves[static_cast<size_t>(s)], {}});
  }
  for (const Sent& one : sent) {
    const auto nodes = static_cast<int64_t>(one.nodes.size());
    const BlockHead head{summing.shape->digest, piece.begin, piece.end, nodes, summing.pieces};
    const auto sent_head = decode_head(*one.payload);
    if (sent_head && sent_head->shape != head.shape) return std::nullopt;
    const auto values = read_block(*one.payload, head, parts);
    if (!values) throw bad(summing, one.from, values.error());
    for (size_t n = 0; n < one.nodes.size(); ++n) {
      const auto begin = values->begin() + static_cast<std::ptrdiff_t>(n * parts.size());
      inputs.push_back({one.nodes[n], nullptr, {begin, begin + static_cast<std::ptrdiff_t>(parts.size())}});
    }
  }
  std::sort(inputs.begin(), inputs.end(),
            [](const Input& a, const Input& b) { return a.node.begin() < b.node.begin(); });
  return inputs;
}

}  // namespace

Payload finish_piece(const Summing& summing, const Piece& piece, const std::vector<Sent>& sent) {
  const auto parts = row_parts(*summing.shape, piece.begin, piece.end);
  const auto inputs = inputs_of(summing, piece, parts, sent);
  if (!inputs) return nullptr;
  std::vector<TreeNode> nodes;
  for (const Input& input : *inputs) nodes.push_back(input.node);
  SINEW_CHECK(cover_exactly(nodes, summing.shape->shards), nodes.size(), summing.shape->shards);
  std::vector<std::vector<const float*>> sums(parts.size());
  std::vector<bool> present(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const Input& input : *inputs) {
      sums[p].push_back(input.sums.empty() ? row_of(input.leaf, parts[p]) : input.sums[p]);
    }
    present[p] = any(sums[p]);
  }
  BlockDraft draft = draft_block({summing.shape->digest, piece.begin, piece.end, 1, summing.pieces}, parts, present);
  for (size_t p = 0; p < parts.size(); ++p) {
    if (present[p]) tree_sum(nodes, sums[p], parts[p].count, draft.values[p]);
  }
  return std::move(draft.bytes);
}

namespace {

using Smalls = std::vector<std::optional<std::string>>;

std::optional<std::string> merge_small(const std::vector<TreeNode>& nodes, Smalls values, const Merge& merge) {
  return tree_merge(nodes, std::move(values), [&](std::string left, std::string right) {
    if (!merge) {
      SINEW_CHECK(left.empty() && right.empty(), "small bytes and no merge");
      return std::string();
    }
    return merge(left, right);
  });
}

}  // namespace

SmallSums small_sums(const Summing& summing, const Merge& merge) {
  SmallSums sums{.shape = summing.shape->digest, .rows = std::vector<bool>(summing.shape->lengths.size()), .nodes = {}};
  sums.purpose = summing.shape->purpose;
  for (const TreeNode& node : summing.nodes) {
    std::vector<TreeNode> places;
    Smalls values;
    for (int64_t s = node.begin(); s < node.end(summing.shape->shards); ++s) {
      const Leaf* leaf = summing.leaves[static_cast<size_t>(s)];
      places.push_back({0, s - node.begin()});
      values.push_back(leaf == nullptr ? std::nullopt : std::optional(leaf->small));
      if (leaf == nullptr) continue;
      for (size_t row = 0; row < leaf->rows.size(); ++row) {
        if (leaf->rows[row] != nullptr) sums.rows[row] = true;
      }
    }
    sums.nodes.push_back(merge_small(places, std::move(values), merge));
  }
  return sums;
}

ReducedHead reduced_head(const Summing& summing, const std::vector<Sent>& sent, const Merge& merge) {
  std::vector<std::pair<TreeNode, std::optional<std::string>>> all;
  ReducedHead small;
  small.shape = summing.shape->digest;
  small.pieces = summing.pieces;
  small.reduced.present.resize(summing.shape->lengths.size());
  for (const Sent& one : sent) {
    auto sums = decode_small_sums(*one.payload);
    if (!sums) throw bad(summing, one.from, sums.error());
    SINEW_CHECK(sums->shape == small.shape, one.from.value);  // Group::State::claims_agree
    if (sums->nodes.size() != one.nodes.size() || sums->rows.size() != small.reduced.present.size())
      throw bad(summing, one.from, "sums of other shards or rows than the plan gave it");
    for (size_t row = 0; row < sums->rows.size(); ++row) {
      if (sums->rows[row]) small.reduced.present[row] = true;
    }
    for (size_t n = 0; n < one.nodes.size(); ++n) all.emplace_back(one.nodes[n], std::move(sums->nodes[n]));
    if (sums->mark) small.reduced.marks.push_back({one.from, *sums->mark});
    small.reduced.compare = small.reduced.compare || sums->compare;
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first.begin() < b.first.begin(); });
  std::vector<TreeNode> nodes;
  Smalls values;
  for (auto& [node, value] : all) {
    nodes.push_back(node);
    values.push_back(std::move(value));
  }
  auto merged = merge_small(nodes, std::move(values), merge);
  small.reduced.any = merged.has_value();
  small.reduced.small = std::move(merged).value_or("");
  return small;
}

}  // namespace sinew::group
