// The audit of shards: some shards of a collective are computed by two members, and their results are compared before
// any member may use the sums.
//
// The owner of an audited shard sends the digest of its result to all computing members, and so does the auditor, which
// computes the shard when it has nothing else to do. The leader ends the collective only when all audited shards have
// two equal results. If the two results differ, a third member computes the shard; it knows that from the two digests.
// All members judge the same digests, so they come to the same end. One of them acts:
//
// - If every shard of every step is audited (Audit::all), no wrong result was ever used. The first member that is not
//   the wrong one reports it, the coordinator fences it, and the collective goes on without its shards.
// - Otherwise, or if the wrong member leads, the leader ends the group with MembersDiffer. The wrong member may have
// made
//   errors in earlier steps, perhaps in its state, and once it is gone, no member can compare that state any more. The
//   leader also writes the records of the run from its own state. So all members go back to the newest checkpoint, for
//   which the whole states were compared.
// - If the results do not show which member is wrong, the leader ends the run.
//
// If the view changes, the audits are planned and the digests sent anew. A member that leaves is missing and never
// wrong. The callers of all functions in this file hold the mutex; only the bodies of Works run without it.
#include <algorithm>

#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {

AuditVerdict Group::State::verdict_of(const PlannedAudit& planned) const {
  static const Opinions none;
  const auto inbox = inboxes.find(open->collective);
  const Opinions* opinions = &none;
  if (inbox != inboxes.end()) {
    const auto found = inbox->second.audits.find(planned.shard);
    if (found != inbox->second.audits.end()) opinions = &found->second;
  }
  return judge_audit(planned, *opinions, open->audit, [this](MemberId id) { return name_in_view(id); });
}

bool Group::State::audits_agree() const {
  return std::ranges::all_of(open->plan->audits, [&](const PlannedAudit& planned) {
    return verdict_of(planned).kind == AuditVerdict::Kind::equal;
  });
}

// Whether this member is to compute the shard again.
bool Group::State::audits_now(const PlannedAudit& planned) const {
  if (planned.auditor == me) return true;
  return planned.third == me && verdict_of(planned).kind == AuditVerdict::Kind::needs_third;
}

std::optional<ShardIndex> Group::State::next_audit() {
  if (!open->plan) return std::nullopt;
  for (const PlannedAudit& planned : open->plan->audits) {
    if (!audits_now(planned)) continue;
    AuditSlot& slot = open->audits[planned.shard];
    if (slot.state != LeafSlot::State::untouched) continue;
    slot.state = LeafSlot::State::in_hand;
    return ShardIndex(planned.shard);
  }
  return std::nullopt;
}

bool Group::State::has_audit_in_hand() const {
  return std::ranges::any_of(open->audits,
                             [](const auto& one) { return one.second.state == LeafSlot::State::in_hand; });
}

// Returns the work of the owner: the digest of its result as it goes into the sums.
Work Group::State::digest_work(int64_t shard) {
  return [this, summing = open->plan->summing, shard]() -> Commit {
    const Digest digest = leaf_digest(summing->leaves[static_cast<size_t>(shard)], summing->shape->lengths);
    return [this, shard, digest](Outbox& outbox) { send_opinion(shard, digest, outbox); };
  };
}

void Group::State::send_opinion(int64_t shard, Digest digest, Outbox& outbox) {
  if (!inboxes[open->collective].audits[shard].emplace(me, digest).second) return;
  send_to_others(Kind::audit, open->collective, shard, std::make_shared<const link::Bytes>(encode(digest)), false,
                 outbox);
}

void Group::State::take_opinion(MemberId from, const link::Frame& one) {
  if (!computing || view->find(from)->joining || !have || one.collective < *have) return;
  const auto digest = one.payload ? decode_digest(*one.payload) : std::unexpected(std::string("nothing"));
  if (!digest) return fence(member_name(from) + " sent " + digest.error());
  inboxes[one.collective].audits[one.part].emplace(from, *digest);
}

// Sends what this member has computed again, and acts on what the members have found.
void Group::State::act_on_audits(Outbox& outbox) {
  if (!open->plan) return;
  for (const PlannedAudit& planned : open->plan->audits) {
    const auto slot = open->audits.find(planned.shard);
    if (slot != open->audits.end() && slot->second.state == LeafSlot::State::delivered && audits_now(planned))
      send_opinion(planned.shard, slot->second.digest, outbox);
  }
  const std::vector<MemberId> everybody = view->computing();
  for (const PlannedAudit& planned : open->plan->audits) {
    const AuditVerdict verdict = verdict_of(planned);
    if (verdict.kind == AuditVerdict::Kind::undecided && everybody.front() == me)
      return end_differing(
          "members computed different results, and it is not known which of them is right: " + verdict.why, {});
    if (!verdict.wrong || !open->plan->wrong.insert(*verdict.wrong).second) continue;
    if (!open->audit.all || *verdict.wrong == everybody.front()) {
      if (everybody.front() == me) return end_differing(verdict.why, {*verdict.wrong});
      continue;
    }
    if (verdict.wrong != me) open->wrong.push_back(verdict.why);
    const auto speaker = std::ranges::find_if(everybody, [&](MemberId id) { return id != *verdict.wrong; });
    if (*speaker == me) outbox.wrong.emplace_back(*verdict.wrong, verdict.why);
  }
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
    ++state.counts.audited;
    state.note_progress();
    state.send_progress(outbox);
    state.act_on_audits(outbox);
    state.changed.notify_all();
  }
  state.send(outbox);
}

}  // namespace sinew::group
