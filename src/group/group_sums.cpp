// Who does what for the sums of a round.
//
// The rows of a round stand one after the other in one flat row, cut into slices (one a member, by plan_slices) and
// those into pieces. When a member's own shards are all delivered it sends, for each piece of others, the sums of its
// maximal nodes to the piece's owner; the owner of a piece adds its own leaves and the nodes of all others in the order
// of the tree and sends the root. Small bytes go the same way to the lead, from every member, shards or not: the lead's
// word that ends a round says that all have begun it. Lanes share the work by pieces. All of this file but the works
// themselves runs under the lock.
#include <algorithm>

#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {

void Group::State::make_plan() {
  if (!open || !settled || !computing || ended() || open->plan) return;
  if (open->collective < settled->collective || records.contains(open->collective)) return;
  const Shape& shape = *open->shape;
  const bool healing = open->collective == settled->collective && !settled->held.empty();
  if (healing && static_cast<int64_t>(settled->held.size()) != shape.shards) {
    return fail("members take collective " + std::to_string(open->collective) + " to have " +
                    std::to_string(shape.shards) + " and " + std::to_string(settled->held.size()) + " shards",
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
  const int64_t others = static_cast<int64_t>(plan.nodes.size()) - (plan.nodes.contains(me) ? 1 : 0);
  plan.awaited.assign(plan.pieces.size(), others);
  for (size_t p = 0; p < plan.pieces.size(); ++p) {
    if (plan.pieces[p].owner == me) {
      if (others == 0) plan.to_finish.push_back(p);
    } else if (plan.nodes.contains(me)) {
      plan.to_send.push_back(p);
    }
  }
  // Each member begins with those behind its own: not all send to the same one at once.
  const auto behind =
      std::find_if(plan.to_send.begin(), plan.to_send.end(), [&](size_t p) { return plan.pieces[p].owner > me; });
  std::rotate(plan.to_send.begin(), behind, plan.to_send.end());
  open->plan = std::move(plan);
  for (const auto& [place, payload] : inboxes[open->collective].sums) count_in(place.first, place.second);
}

// Sums of a member have come for a piece; from the last one on it can be finished.
void Group::State::count_in(int64_t p, MemberId from) {
  Plan& plan = *open->plan;
  if (p < 0 || p >= static_cast<int64_t>(plan.pieces.size()) || !plan.nodes.contains(from)) return;
  const auto at = static_cast<size_t>(p);
  if (plan.pieces[at].owner == me && --plan.awaited[at] == 0) plan.to_finish.push_back(at);
}

std::shared_ptr<const Summing> Group::State::summing() const {
  auto parts = std::make_shared<Summing>();
  parts->collective = open->collective;
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
    plan.to_send.pop_front();
    return send_work(p);
  }
  if (!plan.to_finish.empty()) {
    const size_t p = plan.to_finish.front();
    plan.to_finish.pop_front();
    return finish_work(p);
  }
  const auto everybody = view->computing();
  if (everybody.front() != me || plan.reduce_claimed || inboxes[open->collective].small.size() < everybody.size())
    return std::nullopt;
  plan.reduce_claimed = true;
  return reduce_work();
}

Work Group::State::small_work() {
  return [this, summing = open->plan->summing, leader = *view->leader()]() -> Commit {
    auto bytes = std::make_shared<const link::Bytes>(encode(small_sums(*summing, options.merge)));
    return [this, summing, leader, bytes](Outbox& outbox) {
      if (leader == me) {
        inboxes[summing->collective].small[me] = bytes;
      } else {
        outbox.add(leader, frame(Kind::small, summing->collective, 0, bytes));
      }
    };
  };
}

Work Group::State::send_work(size_t p) {
  return [this, summing = open->plan->summing, piece = open->plan->pieces[p], p]() -> Commit {
    const Payload bytes = sum_piece(*summing, piece);
    return [this, summing, piece, p, bytes](Outbox& outbox) {
      outbox.add(piece.owner, frame(Kind::sums, summing->collective, static_cast<int64_t>(p), bytes));
    };
  };
}

Work Group::State::finish_work(size_t p) {
  std::vector<Sent> sent;
  Inbox& inbox = inboxes[open->collective];
  for (const auto& [from, nodes] : open->plan->nodes) {
    if (from == me) continue;
    Payload& payload = inbox.sums.at({static_cast<int64_t>(p), from});
    sent.push_back({from, nodes, std::move(payload)});  // the place stays taken
  }
  return [this, summing = open->plan->summing, piece = open->plan->pieces[p], p, sent = std::move(sent)]() -> Commit {
    const Payload bytes = finish_piece(*summing, piece, sent);
    return [this, collective = summing->collective, p, bytes](Outbox& outbox) {
      send_to_others(Kind::reduced_piece, collective, static_cast<int64_t>(p), bytes, true, outbox);
      gather_piece(me, collective, static_cast<int64_t>(p), bytes);
      complete();
    };
  };
}

// The lead's: it ends the round, and says so with its note.
Work Group::State::reduce_work() {
  std::vector<Sent> sent;
  for (const auto& [from, bytes] : inboxes[open->collective].small) {
    const auto nodes = open->plan->nodes.find(from);
    sent.push_back({from, nodes == open->plan->nodes.end() ? std::vector<TreeNode>() : nodes->second, bytes});
  }
  return [this, summing = open->plan->summing, sent = std::move(sent), control_message = open->control_message,
          before = history.value_or(0)]() -> Commit {
    ReducedHead small = reduced_head(*summing, sent, options.merge);
    small.before = before;
    small.reduced.control_message = control_message;
    auto bytes = std::make_shared<const link::Bytes>(encode(small));
    return [this, collective = summing->collective, bytes](Outbox& outbox) {
      send_to_others(Kind::reduced_head, collective, 0, bytes, true, outbox);
      gather_small(me, collective, bytes);
      complete();
    };
  };
}

void Group::State::take_sums(MemberId from, const link::Frame& one) {
  if (!one.payload) return fence("member " + std::to_string(from.value) + " sent empty sums");
  if (!computing || view->find(from)->joining || !have || one.collective < *have) return;
  Inbox& inbox = inboxes[one.collective];
  if (static_cast<Kind>(one.kind) == Kind::small) {
    inbox.small.emplace(from, one.payload);
  } else {
    const bool added = inbox.sums.emplace(std::pair(one.part, from), one.payload).second;
    if (added && open && open->plan && open->collective == one.collective) count_in(one.part, from);
  }
}

}  // namespace sinew::group
