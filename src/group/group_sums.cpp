// The sums of a round: what each member adds up, and what the owner of a piece makes of it.
//
// The rows of a round stand one after the other in one flat row, cut into slices (one a member, by plan_slices) and
// those into pieces. When a member's own shards are all delivered it sends, for each piece of others, the sums of its
// maximal nodes to the piece's owner; the owner of a piece adds its own leaves and the nodes of all others in the order
// of the tree and sends the root. Small bytes go the same way to the lead, from every member, shards or not: the lead's
// word that ends a round says that all have begun it. Lanes share the work by pieces.
#include <algorithm>

#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {

// What a Work needs of the open round. Leaves stay where they are until the round is finished, which is after all lanes
// have left it.
struct Summing {
  int64_t round = 0;
  std::shared_ptr<const Shape> shape;
  std::vector<const Leaf*> leaves;  // of this member, by shard; null: absent or another's
  std::vector<bool> mine;
  std::vector<TreeNode> nodes;  // of this member
  int64_t pieces = 0;
};

namespace {

std::string name(MemberId id) {
  return "member " + std::to_string(id.value);
}

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

// This member's sums for a piece of another.
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

// A node of the root's tree in a piece: of this member a leaf, of others a node as it came.
struct Input {
  TreeNode node;
  const Leaf* leaf = nullptr;
  std::vector<const float*> sums;  // by row part, if it is another's
};

struct Sent {  // what another member sent for a piece
  MemberId from;
  std::vector<TreeNode> nodes;
  Payload payload;
};

// A member that takes the round for another can not be in one group with this one, whoever is right.
Error disagreement(const Summing& summing, MemberId other) {
  return Error(
      name(other) + " takes round " + std::to_string(summing.round) + " to have other rows or shards than this member",
      "all members must run the same job, data and program");
}

PutOut bad(const Summing& summing, MemberId from, const std::string& what) {
  return PutOut(name(from) + " sent, for round " + std::to_string(summing.round) + ", " + what);
}

// Throws PutOut for a peer's block that is not what its nodes make.
std::vector<Input> inputs_of(const Summing& summing, const Piece& piece, const std::vector<RowPart>& parts,
                             const std::vector<Sent>& sent) {
  std::vector<Input> inputs;
  for (int64_t s = 0; s < summing.shape->shards; ++s) {
    if (summing.mine[static_cast<size_t>(s)]) inputs.push_back({{0, s}, summing.leaves[static_cast<size_t>(s)], {}});
  }
  for (const Sent& one : sent) {
    const auto nodes = static_cast<int64_t>(one.nodes.size());
    const BlockHead head{summing.shape->digest, piece.begin, piece.end, nodes, summing.pieces};
    const auto sent_head = decode_head(*one.payload);
    if (sent_head && sent_head->shape != head.shape) throw disagreement(summing, one.from);
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

Payload finish_piece(const Summing& summing, const Piece& piece, const std::vector<Sent>& sent) {
  const auto parts = row_parts(*summing.shape, piece.begin, piece.end);
  const auto inputs = inputs_of(summing, piece, parts, sent);
  std::vector<TreeNode> nodes;
  for (const Input& input : inputs) nodes.push_back(input.node);
  SINEW_CHECK(cover_exactly(nodes, summing.shape->shards), nodes.size(), summing.shape->shards);
  std::vector<std::vector<const float*>> sums(parts.size());
  std::vector<bool> present(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const Input& input : inputs) {
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

using Merge = std::function<std::string(std::string_view, std::string_view)>;
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

// This member's small sums, for the lead.
SmallSums small_sums(const Summing& summing, const Merge& merge) {
  SmallSums sums{summing.shape->digest, std::vector<bool>(summing.shape->lengths.size()), {}};
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

SmallRoot small_root(const Summing& summing, const std::vector<Sent>& sent, const Merge& merge) {
  std::vector<std::pair<TreeNode, std::optional<std::string>>> all;
  SmallRoot small;
  small.shape = summing.shape->digest;
  small.pieces = summing.pieces;
  small.root.present.resize(summing.shape->lengths.size());
  for (const Sent& one : sent) {
    auto sums = decode_small_sums(*one.payload);
    if (!sums) throw bad(summing, one.from, sums.error());
    if (sums->shape != small.shape) throw disagreement(summing, one.from);
    if (sums->nodes.size() != one.nodes.size() || sums->rows.size() != small.root.present.size())
      throw bad(summing, one.from, "sums of other shards or rows than the plan gave it");
    for (size_t row = 0; row < sums->rows.size(); ++row) {
      if (sums->rows[row]) small.root.present[row] = true;
    }
    for (size_t n = 0; n < one.nodes.size(); ++n) all.emplace_back(one.nodes[n], std::move(sums->nodes[n]));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first.begin() < b.first.begin(); });
  std::vector<TreeNode> nodes;
  Smalls values;
  for (auto& [node, value] : all) {
    nodes.push_back(node);
    values.push_back(std::move(value));
  }
  auto merged = merge_small(nodes, std::move(values), merge);
  small.root.any = merged.has_value();
  small.root.small = std::move(merged).value_or("");
  return small;
}

}  // namespace

// ---- under the lock ------------------------------------------------------------------------------------------------

void Group::State::make_plan() {
  if (!open || !settled || !computing || ended() || open->plan) return;
  if (open->round < settled->round || records.contains(open->round)) return;
  const Shape& shape = *open->shape;
  const bool healing = open->round == settled->round && !settled->held.empty();
  if (healing && static_cast<int64_t>(settled->held.size()) != shape.shards) {
    return fail("members take round " + std::to_string(open->round) + " to have " + std::to_string(shape.shards) +
                    " and " + std::to_string(settled->held.size()) + " shards",
                "all members must run the same job, data and program");
  }
  Plan plan;
  plan.owners =
      cluster::plan_shards(*view, shape.shards, healing ? settled->held : std::vector<std::optional<MemberId>>());
  std::map<MemberId, std::vector<bool>> shards;
  for (size_t s = 0; s < plan.owners.size(); ++s) {
    auto& of_owner = shards[plan.owners[s]];
    of_owner.resize(plan.owners.size());
    of_owner[s] = true;
    if (plan.owners[s] != me) continue;
    if (open->leaves[s].state == LeafSlot::State::untouched) plan.todo.push_back(static_cast<int64_t>(s));
    if (open->leaves[s].state != LeafSlot::State::delivered) ++plan.missing;
  }
  for (const auto& [owner, mine] : shards) plan.nodes[owner] = maximal_nodes(mine);
  for (const cluster::Slice& slice : cluster::plan_slices(*view, shape.floats())) {
    for (int64_t begin = slice.begin; begin < slice.end; begin += options.piece_floats) {
      plan.pieces.push_back({slice.owner, begin, std::min(slice.end, begin + options.piece_floats)});
    }
  }
  for (size_t p = 0; p < plan.pieces.size(); ++p) {
    if (plan.pieces[p].owner == me) {
      plan.to_finish.push_back(p);
    } else if (plan.nodes.contains(me)) {
      plan.to_send.push_back(p);
    }
  }
  // Each member begins with those behind its own: not all send to the same one at once.
  const auto behind =
      std::find_if(plan.to_send.begin(), plan.to_send.end(), [&](size_t p) { return plan.pieces[p].owner > me; });
  std::rotate(plan.to_send.begin(), behind, plan.to_send.end());
  open->plan = std::move(plan);
}

std::shared_ptr<const Summing> Group::State::summing() const {
  auto parts = std::make_shared<Summing>();
  parts->round = open->round;
  parts->shape = open->shape;
  parts->pieces = static_cast<int64_t>(open->plan->pieces.size());
  for (size_t s = 0; s < open->leaves.size(); ++s) {
    parts->mine.push_back(open->plan->owners[s] == me);
    const auto& leaf = open->leaves[s].leaf;
    parts->leaves.push_back(parts->mine.back() && leaf ? &*leaf : nullptr);
  }
  if (const auto mine = open->plan->nodes.find(me); mine != open->plan->nodes.end()) parts->nodes = mine->second;
  return parts;
}

// What this member can do for the round now and nobody does yet.
std::optional<Work> Group::State::claim() {
  if (!open || !open->plan || open->plan->missing > 0) return std::nullopt;
  Plan& plan = *open->plan;
  if (!plan.summing) plan.summing = summing();
  if (!plan.small_claimed) {
    plan.small_claimed = true;
    return small_work();
  }
  if (!plan.to_send.empty()) {
    const size_t p = plan.to_send.front();
    plan.to_send.erase(plan.to_send.begin());
    return send_work(p);
  }
  Inbox& inbox = inboxes[open->round];
  for (size_t i = 0; i < plan.to_finish.size(); ++i) {
    const size_t p = plan.to_finish[i];
    if (!std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const auto& one) {
          return one.first == me || inbox.sums.contains({static_cast<int64_t>(p), one.first});
        })) {
      continue;
    }
    plan.to_finish.erase(plan.to_finish.begin() + static_cast<std::ptrdiff_t>(i));
    return finish_work(p);
  }
  const auto everybody = view->computing();
  if (everybody.front() != me || plan.root_claimed || inbox.small.size() < everybody.size()) return std::nullopt;
  plan.root_claimed = true;
  return root_work();
}

Work Group::State::small_work() {
  return [this, summing = open->plan->summing, lead = *view->lead()]() -> Commit {
    auto bytes = std::make_shared<const link::Bytes>(encode(small_sums(*summing, options.merge)));
    return [this, summing, lead, bytes](Outbox& outbox) {
      if (lead == me) {
        inboxes[summing->round].small[me] = bytes;
      } else {
        outbox.emplace_back(lead, frame(Kind::small, summing->round, 0, bytes));
      }
    };
  };
}

Work Group::State::send_work(size_t p) {
  return [this, summing = open->plan->summing, piece = open->plan->pieces[p], p]() -> Commit {
    const Payload bytes = sum_piece(*summing, piece);
    return [this, summing, piece, p, bytes](Outbox& outbox) {
      outbox.emplace_back(piece.owner, frame(Kind::sums, summing->round, static_cast<int64_t>(p), bytes));
    };
  };
}

Work Group::State::finish_work(size_t p) {
  std::vector<Sent> sent;
  Inbox& inbox = inboxes[open->round];
  for (const auto& [from, nodes] : open->plan->nodes) {
    const auto found = inbox.sums.find({static_cast<int64_t>(p), from});
    if (found == inbox.sums.end()) continue;  // this member's own
    sent.push_back({from, nodes, std::move(found->second)});
    inbox.sums.erase(found);
  }
  return [this, summing = open->plan->summing, piece = open->plan->pieces[p], p, sent = std::move(sent)]() -> Commit {
    const Payload bytes = finish_piece(*summing, piece, sent);
    return [this, round = summing->round, p, bytes](Outbox& outbox) {
      send_to_others(Kind::root_piece, round, static_cast<int64_t>(p), bytes, true, outbox);
      gather_piece(me, round, static_cast<int64_t>(p), bytes);
      complete();
    };
  };
}

// The lead's: it ends the round, and says so with its note.
Work Group::State::root_work() {
  std::vector<Sent> sent;
  for (const auto& [from, bytes] : inboxes[open->round].small) {
    const auto nodes = open->plan->nodes.find(from);
    sent.push_back({from, nodes == open->plan->nodes.end() ? std::vector<TreeNode>() : nodes->second, bytes});
  }
  return [this, summing = open->plan->summing, sent = std::move(sent), note = open->note,
          before = history.value_or(0)]() -> Commit {
    SmallRoot small = small_root(*summing, sent, options.merge);
    small.before = before;
    small.root.note = note;
    auto bytes = std::make_shared<const link::Bytes>(encode(small));
    return [this, round = summing->round, bytes](Outbox& outbox) {
      send_to_others(Kind::root_small, round, 0, bytes, true, outbox);
      gather_small(me, round, bytes);
      complete();
    };
  };
}

void Group::State::take_sums(MemberId from, const link::Frame& one) {
  if (!one.payload) return end_life(name(from) + " sent empty sums");
  if (!computing || view->find(from)->joining || !have || one.round < *have) return;
  Inbox& inbox = inboxes[one.round];
  if (static_cast<Kind>(one.kind) == Kind::small) {
    inbox.small.emplace(from, one.payload);
  } else {
    inbox.sums.emplace(std::pair(one.part, from), one.payload);
  }
}

}  // namespace sinew::group
