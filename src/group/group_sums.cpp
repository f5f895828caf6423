// Does the work on the sums of a collective.
//
// The rows of a collective form one flat row. It is cut into slices (one for each member, by plan_slices), and each
// slice into pieces. When all shards of a member are delivered, it sends, for each piece of another member, the sums of
// its maximal nodes to the piece's owner. The owner adds its own leaves and the received nodes in the order of the tree
// and sends the reduced piece to all members. Every member also sends its small bytes to the leader, even if it has no
// shards. Therefore the leader's message that ends a collective shows that all members have begun it. The lanes divide
// the work among themselves by pieces. The callers of all functions in this file hold the mutex; only the bodies of
// Works run without it.
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
    return end_differing("the members compute different things in collective " + std::to_string(open->collective) +
                             ": it has " + std::to_string(shape.shards) + " shards here, and " +
                             std::to_string(settled->held.size()) + " on another member",
                         {});
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
  // Each member first sends to the owner with the next higher id, so that not all members send to the same one at once.
  const auto behind =
      std::find_if(plan.to_send.begin(), plan.to_send.end(), [&](size_t p) { return plan.pieces[p].owner > me; });
  std::rotate(plan.to_send.begin(), behind, plan.to_send.end());
  plan.audits = Audits(plan_audits(*view, plan.owners, open->audit));
  for (const PlannedAudit& audit : plan.audits.planned()) {
    if (audit.owner == me) plan.to_digest.push_back(audit.shard);
  }
  open->plan = std::move(plan);
  for (const auto& [place, payload] : inboxes[open->collective].sums) count_in(place.first, place.second);
}

// Counts that a member's sums for a piece have come. When the last ones have come, the piece can be finished.
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

// Returns work on the collective that is possible now and that no lane has claimed yet.
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
  if (!plan.to_digest.empty()) {
    const int64_t shard = plan.to_digest.front();
    plan.to_digest.pop_front();
    return digest_work(shard);
  }
  if (view->leader() != me || plan.reduce_claimed ||
      inboxes[open->collective].small.size() < view->computing().size() || !claims_agree() || !plan.audits.settled())
    return std::nullopt;
  plan.reduce_claimed = true;
  return reduce_work();
}

Work Group::State::small_work() {
  return [this, summing = open->plan->summing, leader = *view->leader(), compare = open->compare,
          mark = open->mark]() -> Commit {
    SmallSums sums = small_sums(*summing, options.merge);
    sums.compare = compare;
    sums.mark = mark;
    auto bytes = std::make_shared<const link::Bytes>(encode(sums));
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
    sent.push_back({from, nodes, std::move(payload)});  // the entry stays, so that a repeated frame is ignored
  }
  return [this, summing = open->plan->summing, piece = open->plan->pieces[p], p, sent = std::move(sent)]() -> Commit {
    const Payload bytes = finish_piece(*summing, piece, sent);
    if (!bytes) return [](Outbox&) {};
    return [this, collective = summing->collective, p, bytes](Outbox& outbox) {
      send_to_others(Kind::reduced_piece, collective, static_cast<int64_t>(p), bytes, true, outbox);
      gather_piece(me, collective, static_cast<int64_t>(p), bytes);
      complete();
    };
  };
}

// Returns the leader's work that ends the collective. Its result contains the control message.
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
