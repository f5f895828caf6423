// Decides when a collective that makes no progress has reached its timeout, and what the member does then.
//
// A member that delivers shards sends a progress frame once a second, so a collective may take any time while a member
// makes progress. When nothing has come for the limit (patience()), a member reports the members it waits for, and the
// coordinator decides which of them to fence. A member may wait for a result that a second member makes from the sums
// of a third one. Then it cannot know which of the two is silent, so it reports them only after 1.5 times the limit. If
// nothing has come after twice the limit, the member fences itself, and the other members continue the run.
//
// The callers of all functions in this file hold the mutex.
#include <algorithm>
#include <cmath>

#include "group/group_state.h"

namespace sinew::group {
namespace {

constexpr double kFirstPatience = 10;          // factor on patience_seconds in the first collective
constexpr double kCollectivesOfPatience = 40;  // factor on the usual duration of a collective
constexpr double kNewestCollective = 0.2;      // weight of the newest collective in the usual duration
constexpr double kProgressSeconds = 1;         // seconds between two progress frames; less if patience_seconds is short
constexpr double kLongestLook = 1;             // if two checks are further apart, this process did not run in between
// Factors on the limit. After kHearsay times the limit, this member also reports members that may themselves wait for
// others. After kInVain times the limit, it fences itself.
constexpr double kHearsay = 1.5, kInVain = 2;

}  // namespace

void Group::State::note_progress() {
  still = 0;
  looked = clock.monotonic_seconds();
  blamed.clear();
}

void Group::State::send_progress(Outbox& outbox) {
  if (!view || looked - progress_sent_at < std::min(kProgressSeconds, options.patience_seconds / 4)) return;
  progress_sent_at = looked;
  send_to_others(Kind::progress, open->collective, 0, nullptr, true, outbox);
}

// Returns the limit, in seconds. It grows with the usual duration of a collective, because a shard may take long
// although nothing is wrong. It is largest in the first collective, because the very first shard takes longest.
double Group::State::patience() const {
  return usual_collective == 0 ? kFirstPatience * options.patience_seconds
                               : std::max(options.patience_seconds, kCollectivesOfPatience * usual_collective);
}

void Group::State::learn_usual_collective(double took) {
  usual_collective = usual_collective == 0 ? took : usual_collective + kNewestCollective * (took - usual_collective);
}

void Group::State::check_timeout(Outbox& outbox) {
  const double now = clock.monotonic_seconds();
  still += std::min(kLongestLook, now - looked);
  looked = now;
  // While this member computes, it reports no member: the others wait for this member, and their limits apply.
  if (open->plan && (open->plan->missing > 0 || has_audit_in_hand())) still = 0;
  if (still <= patience()) return;
  const std::string stands = "collective " + std::to_string(open->collective) + " has not moved for " +
                             std::to_string(std::llround(still)) + " s";
  if (still > kInVain * patience()) {
    fence(stands + "; " + waiting_for());
    check_alive();
  }
  if (!computing) return;
  for (const MemberId id : stalled_members(still > kHearsay * patience())) {
    if (blamed.insert(id).second) outbox.lost.emplace_back(id, stands + ": this member is waited for");
  }
}

// Returns the members that this member waits for. `include_indirect` adds members that may themselves wait for another
// member.
std::set<MemberId> Group::State::stalled_members(bool include_indirect) const {
  std::set<MemberId> silent;
  const std::vector<MemberId> everybody = view ? view->computing() : std::vector<MemberId>();
  if (!settled) {
    for (const MemberId id : everybody) {
      if (!reports.contains(id)) silent.insert(id);
    }
  } else if (!open->plan) {
    if (include_indirect) silent.insert(settled->giver);
  } else {
    const auto found = inboxes.find(open->collective);
    const Inbox none;
    const Inbox& inbox = found == inboxes.end() ? none : found->second;
    for (size_t p = 0; p < open->plan->pieces.size(); ++p) {
      if (open->plan->pieces[p].owner != me) continue;
      for (const auto& [from, nodes] : open->plan->nodes) {
        if (!inbox.sums.contains({static_cast<int64_t>(p), from})) silent.insert(from);
      }
    }
    for (const MemberId id : everybody) {
      if (view->leader() == me && !inbox.small.contains(id)) silent.insert(id);
    }
    for (const PlannedAudit* planned : open->plan->audits.unsettled()) {
      for (const MemberId id : judge_audit(*planned, opinions_of(planned->shard), open->audit).missing)
        silent.insert(id);
    }
    if (include_indirect) add_missing_senders(silent);
  }
  silent.erase(me);
  return silent;
}

// Adds the members that have not sent their parts of the reduced result.
void Group::State::add_missing_senders(std::set<MemberId>& silent) const {
  const auto found = gatherings.find(open->collective);
  const Gathering none;
  const Gathering& reduced = found == gatherings.end() ? none : found->second;
  for (size_t p = 0; p < open->plan->pieces.size(); ++p) {
    if (!reduced.pieces.contains(static_cast<int64_t>(p))) silent.insert(open->plan->pieces[p].owner);
  }
  if (!reduced.small) silent.insert(*view->leader());
}

}  // namespace sinew::group
