// How long a round may stand still, and what happens then.
//
// Who computes tells the others so once a second while it delivers shards: a round may take as long as it likes while
// anybody gets on with it. When nothing has come in for a member's patience it names those it waits for, and the
// coordinator decides who goes. Whoever waits for what another makes of a third one's sums does not know which of them
// is silent, and leaves them half as long again to find out. Where nothing helps, this life is over; the run goes on.
//
// All of this runs under the lock.
#include <algorithm>
#include <cmath>

#include "group/group_state.h"

namespace sinew::group {
namespace {

constexpr double kFirstPatience = 10;          // times the patience, in the first round
constexpr double kCollectivesOfPatience = 40;  // times the usual round
constexpr double kNewestCollective = 0.2;      // weight of the newest round in the usual one
constexpr double kProgressSeconds = 1;         // between two words that this member computes; less for the impatient
constexpr double kLongestLook = 1;             // a longer time between two looks: this process did not run either
constexpr double kHearsay = 1.5, kInVain = 2;  // times the patience

}  // namespace

void Group::State::moves() {
  still = 0;
  looked = clock.monotonic_seconds();
  blamed.clear();
}

void Group::State::send_progress(Outbox& outbox) {
  if (!view || looked - progress_sent_at < std::min(kProgressSeconds, options.patience_seconds / 4)) return;
  progress_sent_at = looked;
  send_to_others(Kind::progress, open->collective, 0, nullptr, true, outbox);
}

// A shard may take long without anything being wrong, the first of all above all.
double Group::State::patience() const {
  return usual_collective == 0 ? kFirstPatience * options.patience_seconds
                               : std::max(options.patience_seconds, kCollectivesOfPatience * usual_collective);
}

void Group::State::learn_usual_collective(double took) {
  usual_collective = usual_collective == 0 ? took : usual_collective + kNewestCollective * (took - usual_collective);
}

void Group::State::be_patient(Outbox& outbox) {
  const double now = clock.monotonic_seconds();
  still += std::min(kLongestLook, now - looked);
  looked = now;
  // What is computed here the others wait for, not this member: how long that may take is theirs to say.
  if (open->plan && open->plan->missing > 0) still = 0;
  if (still <= patience()) return;
  const std::string stands = "collective " + std::to_string(open->collective) + " has not moved for " +
                             std::to_string(std::llround(still)) + " s";
  if (still > kInVain * patience()) {
    fence(stands + "; " + waiting_for());
    check_alive();
  }
  if (!computing) return;
  for (const MemberId id : silent_ones(still > kHearsay * patience())) {
    if (blamed.insert(id).second) outbox.lost.emplace_back(id, stands + ": this member is waited for");
  }
}

// `by_hearsay`: also those who owe something that they may only have to wait for themselves.
std::set<MemberId> Group::State::silent_ones(bool by_hearsay) const {
  std::set<MemberId> silent;
  const std::vector<MemberId> everybody = view ? view->computing() : std::vector<MemberId>();
  if (!settled) {
    for (const MemberId id : everybody) {
      if (!reports.contains(id)) silent.insert(id);
    }
  } else if (!open->plan) {
    if (by_hearsay) silent.insert(settled->giver);
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
      if (everybody.front() == me && !inbox.small.contains(id)) silent.insert(id);
    }
    if (by_hearsay) add_debtors(silent);
  }
  silent.erase(me);
  return silent;
}

// Those who have not sent their part of the root.
void Group::State::add_debtors(std::set<MemberId>& silent) const {
  const auto found = gatherings.find(open->collective);
  const Gathering none;
  const Gathering& reduced = found == gatherings.end() ? none : found->second;
  for (size_t p = 0; p < open->plan->pieces.size(); ++p) {
    if (!reduced.pieces.contains(static_cast<int64_t>(p))) silent.insert(open->plan->pieces[p].owner);
  }
  if (!reduced.small) silent.insert(*view->leader());
}

}  // namespace sinew::group
