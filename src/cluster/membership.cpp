// Computes the next view of the group by a pure function, so that a test can run thousands of histories of a group in a
// second.
//
// One view contains every change that is known at that time. Each change adds a sentence; all sentences together are
// the reason of the view.
#include "cluster/membership.h"

#include <algorithm>
#include <cstdio>

#include "base/joined.h"
#include "cluster/view_json.h"

namespace sinew::cluster {

std::string list_of(const std::vector<MemberId>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += i + 1 == ids.size() ? " and " : ", ";
    text += std::to_string(ids[i].value);
  }
  return text;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

namespace {

using Phase = Member::Phase;

// The next view while next_view builds it.
struct Draft {
  double now;
  const ClusterState& state;
  const ClusterOptions& options;
  std::map<MemberId, std::string> gone;
  std::vector<ViewMember> members;
  std::vector<std::string> sentences;
  std::vector<std::pair<MemberId, std::string>> fenced;

  const Member* member(MemberId id) const {
    const auto found = state.members.find(id);
    return found == state.members.end() ? nullptr : &found->second;
  }
  bool stays(const ViewMember& view_member) const {  // computes and does not leave
    const Member* known = member(view_member.id);
    return !view_member.joining && known != nullptr && known->phase != Phase::leaving &&
           known->phase != Phase::finished;
  }
  std::vector<MemberId> computing() const { return View{.generation = {}, .members = members, .why = {}}.computing(); }
  // Returns the members that take over the work of `one`: all that stay. If no member stays, it is the leader, which
  // leaves last.
  std::vector<MemberId> takers_of(MemberId one) const {
    std::vector<MemberId> ids;
    for (const ViewMember& view_member : members) {
      if (view_member.id != one && stays(view_member)) ids.push_back(view_member.id);
    }
    if (ids.empty() && !computing().empty() && leader() != one) ids.push_back(leader());
    return ids;
  }
  bool is_guest(MemberId id) const {
    const Member* known = member(id);
    return known != nullptr && known->guest;
  }
  // Returns the leader of these members: that of the view before, as long as it computes. At least one must compute.
  MemberId leader() const {
    const auto ids = computing();
    const auto before = state.view ? state.view->leader() : std::nullopt;
    if (before && std::ranges::binary_search(ids, *before)) return *before;
    const auto own = std::ranges::find_if(ids, [&](MemberId id) { return !is_guest(id); });
    return own == ids.end() ? ids.front() : *own;
  }
  void fence(MemberId id, const std::string& why) { fenced.emplace_back(id, why); }
};

std::string named(MemberId id) {
  return "member " + std::to_string(id.value);
}

std::string work_moves(const Draft& draft, const ViewMember& from) {
  if (from.joining || from.share <= 0) return "";
  const auto takers = draft.takers_of(from.id);
  return takers.empty() ? "" : "; its work moves to " + list_of(takers);
}

// ---- members that go -----------------------------------------------------------------------------------------------

std::string loss_sentence(const Draft& draft, const ViewMember& view_member, const std::string& why) {
  const Member* member = draft.member(view_member.id);
  std::string text = named(view_member.id);
  if (member != nullptr && member->phase == Phase::finished) return text + " finished and is gone: " + why;
  text += " lost";
  if (view_member.joining)
    text += " while it joined";
  else if (member != nullptr && member->step > 0)
    text += " at step " + std::to_string(member->step);
  return text + ": " + why + work_moves(draft, view_member);
}

void take_out_the_gone(Draft& draft) {
  for (const auto& [id, why] : draft.gone) draft.fence(id, why);
  const auto before = draft.members;
  std::erase_if(draft.members, [&](const ViewMember& view_member) { return draft.gone.contains(view_member.id); });
  for (const ViewMember& view_member : before) {
    const auto found = draft.gone.find(view_member.id);
    if (found != draft.gone.end()) draft.sentences.push_back(loss_sentence(draft, view_member, found->second));
  }
}

// Once a view is this old, its members count as computing even if no speed was measured yet, because a step may take
// longer than this.
constexpr double kAtWorkSeconds = 2;

// Returns whether at least one of these members has begun to compute with the group: its speed was measured, or the
// view is not new. A leaving member waits for this. If it left earlier and a new member then lost all its donors, the
// new member could not know whether the group continued from the state that it received.
bool are_at_work(const Draft& draft, const std::vector<MemberId>& ids) {
  if (draft.now - draft.state.view_made >= kAtWorkSeconds) return true;
  return std::ranges::any_of(ids, [&](MemberId id) {
    const Member* member = draft.member(id);
    return member != nullptr && member->speed > 0;
  });
}

// Lets leaving members go. A leaving member first hands its work over: its share becomes 0. It is fenced once it acts
// by the view that says so and other members compute. If all members leave, the leader stays: it ends the run, or hands
// over to a new member.
void let_leavers_go(Draft& draft) {
  std::vector<MemberId> left;
  for (ViewMember& view_member : draft.members) {
    const Member* member = draft.member(view_member.id);
    if (member == nullptr || member->phase != Phase::leaving) continue;
    const auto takers = draft.takers_of(view_member.id);
    if (!view_member.joining && takers.empty()) continue;
    if (!view_member.joining && view_member.share > 0) {
      draft.sentences.push_back(named(view_member.id) + " leaves" + work_moves(draft, view_member));
      view_member.share = 0;
    } else if (view_member.joining || (member->view >= draft.state.view->generation && are_at_work(draft, takers))) {
      left.push_back(view_member.id);
      draft.sentences.push_back(named(view_member.id) +
                                (view_member.joining ? " leaves before it computed" : " has left"));
      draft.fence(view_member.id, view_member.joining ? "it left before it computed" : "it left: others have its work");
    }
  }
  std::erase_if(draft.members, [&](const ViewMember& view_member) {
    return std::find(left.begin(), left.end(), view_member.id) != left.end();
  });
}

// Lets a guest lead only as long as no other member has the state and has begun to compute. It then joins again.
void take_the_lead_from_a_guest(Draft& draft) {
  if (!draft.is_guest(draft.leader())) return;
  std::vector<MemberId> own;
  for (const ViewMember& view_member : draft.members) {
    const ViewMember* before = draft.state.view->find(view_member.id);
    const bool new_here = before == nullptr || before->joining;
    if (draft.stays(view_member) && !new_here && !draft.is_guest(view_member.id)) own.push_back(view_member.id);
  }
  if (own.empty() || !are_at_work(draft, own)) return;
  const MemberId guest = draft.leader();
  const std::string why = "it joined by a token, and a member with the run's secret can lead now";
  const auto found = std::ranges::find(draft.members, guest, &ViewMember::id);
  draft.sentences.push_back(named(guest) + " begins again: " + why + work_moves(draft, *found));
  draft.fence(guest, why);
  draft.members.erase(found);
}

// Fences the joiners whose donor is no longer in the view. They join again.
void take_out_orphans(Draft& draft) {
  const auto computing = draft.computing();
  std::erase_if(draft.members, [&](const ViewMember& view_member) {
    if (!view_member.joining || std::binary_search(computing.begin(), computing.end(), view_member.donor)) return false;
    const std::string why =
        "its state was to come from " + std::to_string(view_member.donor.value) + ", which is no longer in the group";
    draft.sentences.push_back(named(view_member.id) + " begins again: " + why);
    draft.fence(view_member.id, why);
    return true;
  });
}

// Fences members that acted by a view before and are not in the newest one, for example because their process was
// suspended for so long that the group continued without them.
void turn_away_strangers(Draft& draft) {
  for (const auto& [id, member] : draft.state.members) {
    if (draft.gone.contains(id) || (draft.state.view && draft.state.view->find(id) != nullptr)) continue;
    if (member.phase == Phase::leaving) {
      draft.fence(id, "it left before it computed");
    } else if (member.phase != Phase::waiting || member.view.value > 0) {
      draft.fence(id, "it is not in the newest view: the group went on without it");
    }
  }
}

bool waits(const Draft& draft, const Member& member) {
  return member.phase == Phase::waiting && member.view.value == 0 && !draft.gone.contains(member.id) &&
         (!draft.state.view || draft.state.view->find(member.id) == nullptr);
}

// Fences the members without the state whose id is lower than the leader's. A view that names no leader is led by the
// computing member with the lowest id, so such a member would take the lead from a living leader when it computes. It
// joins again with a higher id. Such members exist if the leader is lost while several members join, or if a
// coordinator dies before it has put a member into a view.
void turn_away_lower_ids(Draft& draft) {
  if (draft.computing().empty()) return;
  const MemberId leader = draft.leader();
  const std::string why = "its id is lower than that of the leader, " + std::to_string(leader.value) +
                          ", and it was not yet computing when that member took the lead";
  std::erase_if(draft.members, [&](const ViewMember& view_member) {
    if (!view_member.joining || leader < view_member.id) return false;
    draft.sentences.push_back(named(view_member.id) + " begins again: " + why);
    draft.fence(view_member.id, why);
    return true;
  });
  for (const auto& [id, member] : draft.state.members) {
    if (waits(draft, member) && id < leader) draft.fence(id, why);
  }
}

// ---- members that come ---------------------------------------------------------------------------------------------

void let_compute(Draft& draft) {
  double sum = 0;
  int64_t sharing = 0;
  for (const ViewMember& view_member : draft.members) {
    if (view_member.joining || view_member.share <= 0) continue;
    sum += view_member.share;
    ++sharing;
  }
  for (ViewMember& view_member : draft.members) {
    const Member* member = draft.member(view_member.id);
    if (!view_member.joining || member == nullptr || member->phase != Phase::caught_up) continue;
    view_member.joining = false;
    view_member.donor = MemberId();
    view_member.share = sharing > 0 ? sum / static_cast<double>(sharing) : 1;
    draft.sentences.push_back(named(view_member.id) + " computes from here on");
  }
}

// Returns the donor for a new joiner: the computing member with the fewest joiners. Members that leave and the leader,
// which writes the files, are chosen only if there is no other.
MemberId donor_in(const Draft& draft) {
  const auto computing = draft.computing();
  const MemberId leader = draft.leader();
  const auto burden = [&](MemberId id) {
    const ViewMember* view_member = nullptr;
    int64_t joiners = 0;
    for (const ViewMember& one : draft.members) {
      if (one.id == id) view_member = &one;
      if (one.joining && one.donor == id) ++joiners;
    }
    return std::tuple(!draft.stays(*view_member), id == leader, joiners, id);
  };
  return *std::min_element(computing.begin(), computing.end(),
                           [&](MemberId a, MemberId b) { return burden(a) < burden(b); });
}

void add_waiting_members(Draft& draft) {
  for (const auto& [id, member] : draft.state.members) {
    if (!waits(draft, member) || draft.members.size() >= kMostMembers) continue;
    if (id < draft.leader()) continue;  // it was turned away
    const MemberId donor = donor_in(draft);
    const auto place = std::find_if(draft.members.begin(), draft.members.end(),
                                    [&, me = id](const ViewMember& view_member) { return me < view_member.id; });
    draft.members.insert(place, ViewMember{id, member.address, 1, true, donor});
    draft.sentences.push_back(named(id) + " joins; its state comes from " + std::to_string(donor.value));
  }
}

void let_shares_follow(Draft& draft) {
  if (draft.now - draft.state.shares_changed < draft.options.share_seconds) return;
  const Shares shares = shares_by_speed(draft.members, draft.state, draft.options);
  if (shares.why.empty()) return;
  for (ViewMember& view_member : draft.members) {
    if (const auto found = shares.by_id.find(view_member.id); found != shares.by_id.end())
      view_member.share = found->second;
  }
  draft.sentences.push_back(shares.why);
}

// ---- the result ----------------------------------------------------------------------------------------------------

std::string why_of(const Draft& draft) {
  std::string text = joined(draft.sentences, "; ");
  constexpr size_t kEnough = 2000;
  if (text.size() > kEnough) text = text.substr(0, kEnough) + " ...";
  return text;
}

Generation next_generation(const ClusterState& state) {
  Generation highest = state.at_least;
  if (state.view) highest = std::max(highest, state.view->generation);
  for (const auto& [id, member] : state.members) highest = std::max(highest, member.view);
  return highest.next();
}

Decision with_view(Draft& draft, bool fresh) {
  const std::string why = why_of(draft);
  const MemberId leader = draft.leader();
  View view{next_generation(draft.state), std::move(draft.members), fresh, why, draft.state.going_back};
  if (leader != view.leader()) view.named_leader = leader;
  return {.view = std::move(view), .fenced = std::move(draft.fenced), .why = why};
}

// Begins a fresh view with the waiting members, because no member that has the state is left.
Decision begin_afresh(Draft& draft) {
  for (const ViewMember& view_member : draft.members)
    draft.fence(view_member.id, "nobody is left who could give it the state");
  draft.members.clear();
  double waited = 0;
  int64_t guests = 0;
  std::vector<MemberId> ids;
  for (const auto& [id, member] : draft.state.members) {
    if (!waits(draft, member) || draft.members.size() >= kMostMembers) continue;
    waited = std::max(waited, draft.now - member.since);
    if (member.guest) {
      ++guests;
      continue;
    }
    draft.members.push_back({id, member.address, 1, false, MemberId()});
    ids.push_back(id);
  }
  const auto& options = draft.options;
  const auto here = static_cast<int64_t>(ids.size()) + guests;
  const auto wanted = std::max(options.wanted, options.minimum);
  const bool in_time = waited >= options.gather_seconds;
  if (ids.empty() || (here < wanted && !(in_time && here >= options.minimum))) {
    std::string why = std::to_string(here) + " of " + std::to_string(wanted) + " members are here";
    if (guests > 0 && ids.empty()) {
      why += "; a member with the run's secret must begin, because only it can read the run's checkpoints";
    } else if (here >= options.minimum && here > 0) {
      why += "; the others are waited for, " + seconds_text(options.gather_seconds - waited) + " more";
    } else {
      why += "; at least " + std::to_string(options.minimum) + " are needed to begin";
    }
    draft.sentences.push_back(why);
    return {.view = std::nullopt, .fenced = std::move(draft.fenced), .why = why_of(draft)};
  }
  const bool one = ids.size() == 1;
  draft.sentences.push_back((one ? "member " : "members ") + list_of(ids) + (one ? " begins" : " begin") +
                            (here < wanted ? ": the others did not come in " + seconds_text(waited) : ""));
  return with_view(draft, true);
}

}  // namespace

Decision next_view(double now, const ClusterState& state, const ClusterOptions& options) {
  if (state.finished) return {.view = std::nullopt, .fenced = {}, .why = "the run is over"};
  if (now < state.listens_until) {
    const std::string why = "a new coordinator listens for " + seconds_text(state.listens_until - now) + " more";
    return {.view = std::nullopt, .fenced = {}, .why = why};
  }
  Draft draft{now, state, options, gone_members(now, state, options), {}, {}, {}};
  if (state.view) draft.members = state.view->members;
  take_out_the_gone(draft);
  turn_away_strangers(draft);
  turn_away_lower_ids(draft);
  // let_compute runs before take_out_orphans, because a member that has caught up has the state without its donor.
  let_compute(draft);
  if (draft.computing().empty()) return begin_afresh(draft);
  take_the_lead_from_a_guest(draft);
  let_leavers_go(draft);
  take_out_orphans(draft);
  add_waiting_members(draft);
  let_shares_follow(draft);
  if (draft.sentences.empty()) return {.view = std::nullopt, .fenced = std::move(draft.fenced), .why = kNothingChanged};
  return with_view(draft, false);
}

void apply(const Decision& decision, double now, ClusterState& state) {
  for (const auto& [id, why] : decision.fenced) state.members.erase(id);
  if (decision.view) {
    for (const ViewMember& view_member : decision.view->members) {
      const ViewMember* before = state.view ? state.view->find(view_member.id) : nullptr;
      if (before != nullptr && !before->joining && before->share != view_member.share) state.shares_changed = now;
    }
    state.view = decision.view;
    state.view_made = now;
  } else if (state.view &&
             now >= state.listens_until) {  // before that, perhaps not all computing members have sent a heartbeat
    const auto computing = state.view->computing();
    const bool buried =
        std::none_of(computing.begin(), computing.end(), [&](MemberId id) { return state.members.contains(id); });
    if (!buried) return;
    state.at_least = std::max(state.at_least, state.view->generation);
    state.view.reset();
  }
}

namespace {

// Names each field in which two identities differ. An identity that is not a JSON object counts as one field, `name`.
std::string different_fields(const std::string& mine, const std::string& ours, const std::string& name,
                             const std::string& whose) {
  const auto left = parse_json(mine), right = parse_json(ours);
  const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : dump(value); };
  if (!left || !right || !left->is_object() || !right->is_object())
    return "its " + name + " is " + mine + ", that of " + whose + " is " + ours;
  Json all = *left;
  all.update(*right);
  std::string list;
  for (const auto& [key, ignored] : all.items()) {
    const Json is = left->value(key, Json("absent")), other = right->value(key, Json("absent"));
    if (is == other) continue;
    list += (list.empty() ? "its " : "; its ") + key + " is " + text(is) + ", that of " + whose + " is " + text(other);
  }
  return list;
}

// Returns why two members must not be in one run, or "".
std::string difference(const Member& one, const Member& other) {
  const Identity& mine = one.identity;
  const Identity& ours = other.identity;
  const std::string whose = "member " + std::to_string(other.id.value);
  if (mine.job != ours.job)
    return "another job, model file or data: " + different_fields(mine.job, ours.job, "digest", whose);
  if (mine.machine != ours.machine)
    return "another machine or other libraries, which give other bits: " +
           different_fields(mine.machine, ours.machine, "machine", whose);
  if (mine.probe == ours.probe) return "";
  // A worker that knew the digest of the others could pretend to have it.
  return "it computes other numbers: its gradients of the probe shard have digest " + mine.probe + ", those of " +
         whose + " differ";
}

// Returns whether the member is a guest that does not have the state. A guest with the state was compared with the
// members that gave it.
bool is_idle_guest(const Member& member, const ClusterState& state) {
  const ViewMember* entry = state.view ? state.view->find(member.id) : nullptr;
  return member.guest && (entry == nullptr || entry->joining);
}

}  // namespace

std::string refusal(const Member& joiner, const ClusterState& state) {
  const Member* here = nullptr;
  for (const auto& [id, member] : state.members) {
    const bool counts = joiner.guest || !is_idle_guest(member, state);
    if (!member.lost.empty() || id == joiner.id || !counts) continue;
    if (here == nullptr || (is_idle_guest(*here, state) && !is_idle_guest(member, state))) here = &member;
  }
  return here == nullptr ? "" : difference(joiner, *here);
}

void lose_other_guests(const Member& joined, ClusterState& state) {
  if (joined.guest) return;
  for (auto& [id, member] : state.members) {
    if (!member.lost.empty() || !is_idle_guest(member, state)) continue;
    if (const std::string why = difference(member, joined); !why.empty()) member.lost = why;
  }
}

}  // namespace sinew::cluster
