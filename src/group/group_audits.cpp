// The audit of shards: some shards of a collective are computed by two members, and their results are compared before
// any member may use the sums.
//
// The owner of an audited shard sends the digest of its result to all computing members, and so does the auditor, which
// computes the shard when it has nothing else to do. The leader ends the collective only when all audited shards have
// two equal results. If the two results differ, a third member computes the shard; it knows that from the two digests.
// All members judge the same digests, so they come to the same end:
//
// - If every shard of every step is audited (Audit::all), no wrong result was ever used. The leader reports the
//   wrong member, the coordinator fences it, and the collective goes on without its shards.
// - Otherwise, or if the wrong member leads, all members end the group with MembersDiffer. The wrong member may have
//   made errors in earlier steps, perhaps in its state, and once it is gone, no member can compare that state any more.
//   The leader also writes the records of the run from its own state. So all members go back to the newest checkpoint,
//   for which the whole states were compared.
// - If the results do not show which member is wrong, all members end the group in this way, and the leader ends the
//   run.
//
// No member goes on after it has found such a difference, so the death of the leader does not hide it. If the view
// changes before, the audits are planned and the digests sent anew. A member that leaves is missing and never wrong.
// The callers of all functions in this file hold the mutex; only the bodies of Works run without it.
#include <algorithm>

#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {

const Opinions& Group::State::opinions_of(int64_t shard) const {
  static const Opinions none;
  const auto inbox = inboxes.find(open->collective);
  if (inbox == inboxes.end()) return none;
  const auto found = inbox->second.audits.find(shard);
  return found == inbox->second.audits.end() ? none : found->second;
}

std::optional<ShardIndex> Group::State::next_audit() {
  if (!open->plan) return std::nullopt;
  std::deque<int64_t>& todo = open->plan->to_audit;
  while (!todo.empty()) {
    const int64_t shard = todo.front();
    todo.pop_front();
    AuditSlot& slot = open->audits[shard];
    if (slot.state != LeafSlot::State::untouched) continue;
    slot.state = LeafSlot::State::in_hand;
    return ShardIndex(shard);
  }
  return std::nullopt;
}

bool Group::State::has_audit_in_hand() const {
  return std::ranges::any_of(open->audits,
                             [](const auto& one) { return one.second.state == LeafSlot::State::in_hand; });
}

// Returns the owner's work: it makes the digest of the owner's result, from the same leaf that goes into the sums.
Work Group::State::digest_work(int64_t shard) {
  return [this, summing = open->plan->summing, shard]() -> Commit {
    const Digest digest = leaf_digest(summing->leaves[static_cast<size_t>(shard)], summing->shape->lengths);
    return [this, shard, digest](Outbox& outbox) { send_opinion(shard, digest, outbox); };
  };
}

void Group::State::send_opinion(int64_t shard, Digest digest, Outbox& outbox) {
  if (!inboxes[open->collective].audits[shard].emplace(me, digest).second) return;
  if (open->plan) open->plan->audits.heard(shard);
  send_to_others(Kind::audit, open->collective, shard, std::make_shared<const link::Bytes>(encode(digest)), false,
                 outbox);
}

void Group::State::take_opinion(MemberId from, const link::Frame& one) {
  if (!computing || view->find(from)->joining || !have || one.collective < *have) return;
  const auto digest = one.payload ? decode_digest(*one.payload) : std::unexpected(std::string("nothing"));
  if (!digest) return fence(member_name(from) + " sent " + digest.error());
  const bool fresh = inboxes[one.collective].audits[one.part].emplace(from, *digest).second;
  if (fresh && open && open->plan && open->collective == one.collective) open->plan->audits.heard(one.part);
}

// Judges the audits for which a result has come. If this member is to compute a shard again, plans that, or sends the
// result if it has it. Then acts on the verdicts.
void Group::State::act_on_audits(Outbox& outbox) {
  if (!open || !open->plan || ended()) return;
  while (const PlannedAudit* planned = open->plan->audits.next_to_judge()) {
    const AuditVerdict verdict = judge_audit(*planned, opinions_of(planned->shard), open->audit);
    ++counts.judged;
    if (verdict.kind == AuditVerdict::Kind::equal) open->plan->audits.settle(planned->shard);
    const bool decides = planned->third == me && verdict.kind == AuditVerdict::Kind::needs_third;
    if (planned->auditor == me || decides) compute_or_send(planned->shard, outbox);
    if (verdict.kind == AuditVerdict::Kind::wrong || verdict.kind == AuditVerdict::Kind::undecided) {
      act_on_verdict(verdict, *planned, outbox);
      if (ended()) return;
    }
  }
}

// Called if this member is the auditor of the shard or the third member that decides about it.
void Group::State::compute_or_send(int64_t shard, Outbox& outbox) {
  const auto slot = open->audits.find(shard);
  if (slot == open->audits.end() || slot->second.state == LeafSlot::State::untouched) {
    open->plan->to_audit.push_back(shard);
  } else if (slot->second.state == LeafSlot::State::delivered) {
    send_opinion(shard, slot->second.digest, outbox);
  }
}

void Group::State::act_on_verdict(const AuditVerdict& verdict, const PlannedAudit& planned, Outbox& outbox) {
  const MemberId leader = *view->leader();
  if (verdict.wrong && !open->plan->wrong.insert(*verdict.wrong).second) return;
  const std::string why = text_of(verdict, planned, opinions_of(planned.shard), open->audit,
                                  [this](MemberId id) { return name_in_view(id); });
  if (!verdict.wrong)
    return end_differing("members computed different results, and it is not known which of them is right: " + why, {});
  if (!open->audit.all || *verdict.wrong == leader) return end_differing(why, {*verdict.wrong});
  if (verdict.wrong != me) open->wrong.push_back(why);
  if (leader == me) outbox.wrong.emplace_back(*verdict.wrong, why);
}

void Group::deliver_audit(ShardIndex shard, const std::optional<Leaf>& leaf) {
  State& state = *state_;
  std::shared_ptr<const Shape> shape;
  {
    const std::lock_guard lock(state.mutex);
    state.check_alive();
    SINEW_CHECK(state.open, shard);
    shape = state.open->shape;
  }
  SINEW_CHECK(!leaf || leaf->rows.empty() || leaf->rows.size() == shape->lengths.size(), leaf->rows.size());
  const Digest digest = leaf_digest(leaf ? &*leaf : nullptr, shape->lengths);
  Outbox outbox;
  {
    const std::lock_guard lock(state.mutex);
    state.check_alive();
    AuditSlot& slot = state.open->audits[shard.value];
    SINEW_CHECK(slot.state == LeafSlot::State::in_hand, shard);
    slot = {LeafSlot::State::delivered, digest};
    if (state.open->plan) state.open->plan->audits.heard(shard.value);
    ++state.counts.audited;
    state.note_progress();
    state.send_progress(outbox);
    state.act_on_audits(outbox);
    state.changed.notify_all();
  }
  state.send(outbox);
}

}  // namespace sinew::group
