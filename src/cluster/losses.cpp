// Who is gone, and for what reason.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "cluster/membership.h"

namespace sinew::cluster {
namespace {

using Gone = std::map<MemberId, std::string>;

double silence_of(double now, const Member& member, const ClusterState& state) {
  return now - std::max({member.heard, state.awake, state.began});
}

// Is there, apart from those gone and those silent for so long, somebody who has the state?
bool state_lives_without(double now, const ClusterState& state, const Gone& gone, double silence) {
  if (!state.view) return false;
  for (const MemberId id : state.view->computing()) {
    const auto member = state.members.find(id);
    if (member == state.members.end() || gone.contains(id)) continue;
    if (silence_of(now, member->second, state) <= silence) return true;
  }
  return false;
}

void add_silent(double now, const ClusterState& state, const ClusterOptions& options, Gone& gone) {
  const bool state_is_safe = state_lives_without(now, state, gone, options.silence_seconds);
  Gone silent;
  for (const auto& [id, member] : state.members) {
    const Seat* seat = state.view ? state.view->find(id) : nullptr;
    const bool has_state = seat != nullptr && !seat->joining;
    const double patience = options.silence_seconds * (has_state && !state_is_safe ? kPatienceWithTheLast : 1);
    const double silence = silence_of(now, member, state);
    if (silence > patience && !gone.contains(id)) silent[id] = "silent for " + seconds_text(silence);
  }
  gone.merge(silent);
}

// ---- broken links --------------------------------------------------------------------------------------------------

struct Break {
  MemberId reporter, reported;
  bool by_joining = false;
  bool both_live = false;  // the reported one has spoken since: it is the link that broke, nobody died
  double at = 0;
  std::string why;
};

// Reports that still say something: both ends are seated and not gone by other knowledge.
std::vector<Break> breaks_of(const ClusterState& state, const ClusterOptions& options, const Gone& gone) {
  std::vector<Break> breaks;
  if (!state.view) return breaks;
  for (const auto& [id, member] : state.members) {
    if (gone.contains(id) || state.view->find(id) == nullptr) continue;
    for (const auto& [reporter, report] : member.reports) {
      const Seat* seat = state.view->find(reporter);
      if (seat == nullptr || reporter == id || gone.contains(reporter) || !state.members.contains(reporter)) continue;
      const bool lives = member.heard > report.at + options.report_seconds / 4;  // not a word that was under way
      breaks.push_back({reporter, id, seat->joining, lives, report.at, report.why});
    }
  }
  return breaks;
}

int64_t reporters_of(MemberId id, const std::vector<Break>& breaks, bool computing_only) {
  return std::count_if(breaks.begin(), breaks.end(),
                       [&](const Break& one) { return one.reported == id && !(computing_only && one.by_joining); });
}

bool is_joining(MemberId id, const ClusterState& state) {
  const Seat* seat = state.view->find(id);
  return seat != nullptr && seat->joining;
}

// How many of those that compute it has no link to: they say so, or it says so of them and they live. Who is cut off
// from several goes rather than they, whoever was first to say it.
int64_t cut_off_from(MemberId id, const std::vector<Break>& breaks, const ClusterState& state) {
  std::set<MemberId> others;
  for (const Break& one : breaks) {
    if (one.reported == id && !one.by_joining) others.insert(one.reporter);
    if (one.reporter == id && one.both_live && !is_joining(one.reported, state)) others.insert(one.reported);
  }
  return std::ssize(others);
}

// More than half of the others that compute, at least two of them, say that it is lost.
bool most_say(MemberId id, const std::vector<Break>& breaks, const ClusterState& state, const Gone& gone) {
  int64_t others = 0;
  for (const MemberId other : state.view->computing()) others += other != id && !gone.contains(other) ? 1 : 0;
  return others >= 2 && 2 * reporters_of(id, breaks, true) > others;
}

// Whether a report waited long enough for others' to come in. The word of one who joins is not worth a member that
// has the state: it counts once that member spoke again and so lives; if it never does, its silence tells.
bool ripe(const Break& one, double now, const ClusterOptions& options) {
  return now - one.at >= options.report_seconds && (one.both_live || !one.by_joining);
}

std::optional<MemberId> first_to_go(double now, const std::vector<Break>& breaks, const ClusterState& state,
                                    const ClusterOptions& options, const Gone& gone) {
  std::set<MemberId> agreed, ends;
  for (const Break& one : breaks) {
    if (most_say(one.reported, breaks, state, gone)) agreed.insert(one.reported);
    if (ripe(one, now, options)) ends.insert({one.reporter, one.reported});
  }
  const auto& candidates = agreed.empty() ? ends : agreed;
  const auto weight = [&](MemberId id) {
    return std::tuple(cut_off_from(id, breaks, state), is_joining(id, state), reporters_of(id, breaks, false), id);
  };
  const auto worst = std::max_element(candidates.begin(), candidates.end(),
                                      [&](MemberId a, MemberId b) { return weight(a) < weight(b); });
  if (worst == candidates.end()) return std::nullopt;
  return *worst;
}

// Of a broken link both ends have a word: one closed it for a reason, the other saw it closed.
std::string reason_for(MemberId id, const std::vector<Break>& breaks) {
  std::vector<MemberId> reporters;
  std::string why;
  for (const Break& one : breaks) {
    if (one.reported != id) continue;
    if (reporters.empty()) why = one.why;
    reporters.push_back(one.reporter);
  }
  const auto own = std::find_if(breaks.begin(), breaks.end(), [&](const Break& one) {
    return one.reporter == id && (reporters.empty() || one.reported == reporters.front());
  });
  if (reporters.empty()) return "has no link to " + list_of({own->reported}) + ": " + own->why;
  return why + " (told by " + list_of(reporters) + (own == breaks.end() ? "" : "; its own word: " + own->why) + ")";
}

}  // namespace

Gone ends_of_broken_links(double now, const ClusterState& state, const ClusterOptions& options, const Gone& gone) {
  Gone all = gone, ends;
  for (;;) {
    const auto breaks = breaks_of(state, options, all);
    const auto next = first_to_go(now, breaks, state, options, all);
    if (!next) return ends;
    ends[*next] = reason_for(*next, breaks);
    all[*next] = ends[*next];
  }
}

Gone gone_members(double now, const ClusterState& state, const ClusterOptions& options) {
  Gone gone;
  for (const auto& [id, member] : state.members) {
    if (!member.lost.empty()) gone[id] = member.lost;
  }
  if (state.view) {
    for (const Seat& seat : state.view->seats) {
      if (!state.members.contains(seat.id)) gone[seat.id] = "has not spoken to the new coordinator";
    }
  }
  add_silent(now, state, options, gone);
  gone.merge(ends_of_broken_links(now, state, options, gone));
  return gone;
}

}  // namespace sinew::cluster
