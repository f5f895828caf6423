// Finds the members that the group has lost, each with the reason.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "cluster/membership.h"

namespace sinew::cluster {
namespace {

using Gone = std::map<MemberId, std::string>;

double silence_of(double now, const Member& member, const ClusterState& state) {
  return now - std::max({member.heard, state.awake, state.began});
}

// Returns whether at least one member has the state and is neither gone nor silent for longer than `silence`.
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
    const ViewMember* view_member = state.view ? state.view->find(id) : nullptr;
    const bool has_state = view_member != nullptr && !view_member->joining;
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
  // true: the reported member has sent a heartbeat after the report, so the link broke and neither process died
  bool both_live = false;
  bool of_guest = false;  // true: the reported member is a guest, and the reporter is not
  double at = 0;
  std::string why;
};

// Returns the reports that still matter: both members are in the view, and the group has not lost either of them for
// another reason. A guest may lie. So if it reports a member that is no guest, and that member lives, this counts as a
// report about the guest. If that member is dead, its supervisor says so, or its silence does.
std::vector<Break> breaks_of(const ClusterState& state, const ClusterOptions& options, const Gone& gone) {
  std::vector<Break> breaks;
  if (!state.view) return breaks;
  for (const auto& [id, member] : state.members) {
    if (gone.contains(id) || state.view->find(id) == nullptr) continue;
    for (const auto& [reporter, report] : member.loss_reports) {
      const ViewMember* view_member = state.view->find(reporter);
      if (view_member == nullptr || reporter == id || gone.contains(reporter) || !state.members.contains(reporter))
        continue;
      const bool lives =
          member.heard > report.at + options.report_seconds / 4;  // not a heartbeat that was already on its way
      const bool by_guest = state.members.at(reporter).guest;
      if (by_guest && !member.guest) {
        if (lives) breaks.push_back({id, reporter, state.view->find(id)->joining, true, true, report.at, report.why});
      } else {
        breaks.push_back({reporter, id, view_member->joining, lives, member.guest && !by_guest, report.at, report.why});
      }
    }
  }
  return breaks;
}

// The members at the ends of broken links, and the reports about each. take_worst() keeps them up to date while it
// takes members out. There may be hundreds of such members, each with reports about half of the others. All of this
// must be fast, because the coordinator holds its lock meanwhile.
class Ends {
 public:
  Ends(double now, const std::vector<Break>& breaks, const ClusterState& state, const ClusterOptions& options,
       const Gone& gone);

  // Takes out the member that must go next, together with its reports; nullopt: no member must go.
  std::optional<MemberId> take_worst();

 private:
  // Bits that describe the relation of one member to another.
  static constexpr unsigned kReported = 1, kReportedByComputing = 2, kCutOff = 4, kRipe = 8;
  struct End {
    MemberId id;
    bool computes = false, joins = false, taken = false;
    int64_t reporters = 0, computing_reporters = 0;
    // The number of computing members to which this member has no link: they report it, or it reports them and they
    // live. A member that is cut off from several others is fenced rather than the others, whichever reported first.
    int64_t cut_off_from = 0;
    int64_t ripe = 0;
  };

  void tie(size_t one, size_t other, unsigned how);
  static void count(End& end, unsigned how, int64_t by);
  bool most_say(const End& end) const;

  std::vector<End> ends_;
  std::vector<uint8_t> ties_;  // relation of each end to each other end
  int64_t computing_ = 0;      // the number of computing members that are not gone
};

// Returns whether a report is so old that other reports had time to arrive. A joining member's report must not cost the
// group a member that has the state. It counts only once the reported member has sent another heartbeat, which shows
// that the member lives. If no heartbeat comes, the member is fenced for its silence.
bool ripe(const Break& one, double now, const ClusterOptions& options) {
  return now - one.at >= options.report_seconds && (one.both_live || !one.by_joining);
}

Ends::Ends(double now, const std::vector<Break>& breaks, const ClusterState& state, const ClusterOptions& options,
           const Gone& gone) {
  if (!state.view) return;
  std::map<MemberId, size_t> places;
  for (const Break& one : breaks) places[one.reporter] = places[one.reported] = 0;
  for (auto& [id, place] : places) {
    const bool joins = state.view->find(id)->joining;
    place = ends_.size();
    ends_.push_back({.id = id, .computes = !joins, .joins = joins});
  }
  for (const MemberId id : state.view->computing()) computing_ += gone.contains(id) ? 0 : 1;
  ties_.resize(ends_.size() * ends_.size());
  for (const Break& one : breaks) {
    const size_t from = places.at(one.reporter), about = places.at(one.reported);
    const unsigned often = ripe(one, now, options) ? kRipe : 0U;
    tie(about, from, often | kReported | (one.by_joining ? 0U : kReportedByComputing | kCutOff));
    // Guests cannot cut off another member: they could close their links to it.
    tie(from, about, often | (one.both_live && !one.of_guest && !ends_[about].joins ? kCutOff : 0U));
  }
}

void Ends::tie(size_t one, size_t other, unsigned how) {
  uint8_t& now = ties_[one * ends_.size() + other];
  count(ends_[one], how & ~now, 1);
  now = static_cast<uint8_t>(now | how);
}

void Ends::count(End& end, unsigned how, int64_t by) {
  if ((how & kReported) != 0) end.reporters += by;
  if ((how & kReportedByComputing) != 0) end.computing_reporters += by;
  if ((how & kCutOff) != 0) end.cut_off_from += by;
  if ((how & kRipe) != 0) end.ripe += by;
}

// Returns whether more than half of the other computing members, and at least two, report this member as lost.
bool Ends::most_say(const End& end) const {
  const int64_t others = computing_ - (end.computes ? 1 : 0);
  return others >= 2 && 2 * end.computing_reporters > others;
}

std::optional<MemberId> Ends::take_worst() {
  const auto weight = [&](const End& end) {
    return std::tuple(most_say(end), end.cut_off_from, end.joins, end.reporters, end.id);
  };
  std::optional<size_t> worst;
  for (size_t i = 0; i < ends_.size(); ++i) {
    const bool candidate = !ends_[i].taken && (ends_[i].ripe > 0 || most_say(ends_[i]));
    if (candidate && (!worst || weight(ends_[*worst]) < weight(ends_[i]))) worst = i;
  }
  if (!worst) return std::nullopt;
  ends_[*worst].taken = true;
  computing_ -= ends_[*worst].computes ? 1 : 0;
  for (size_t i = 0; i < ends_.size(); ++i) count(ends_[i], ties_[i * ends_.size() + *worst], -1);
  return ends_[*worst].id;
}

// Returns the reason for fencing a member. It quotes both ends of the broken link: one end closed the link, the other
// saw that it was closed.
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
  return why + " (reported by " + list_of(reporters) + (own == breaks.end() ? "" : "; its own reason: " + own->why) +
         ")";
}

}  // namespace

Gone ends_of_broken_links(double now, const ClusterState& state, const ClusterOptions& options, const Gone& gone) {
  auto breaks = breaks_of(state, options, gone);
  Ends ends(now, breaks, state, options, gone);
  Gone all;
  while (const auto next = ends.take_worst()) {
    all[*next] = reason_for(*next, breaks);
    std::erase_if(breaks, [&](const Break& one) { return one.reporter == *next || one.reported == *next; });
  }
  return all;
}

Gone gone_members(double now, const ClusterState& state, const ClusterOptions& options) {
  Gone gone;
  for (const auto& [id, member] : state.members) {
    if (!member.lost.empty()) gone[id] = member.lost;
  }
  if (state.view) {
    for (const ViewMember& view_member : state.view->members) {
      if (!state.members.contains(view_member.id)) gone[view_member.id] = "has not spoken to the new coordinator";
    }
  }
  add_silent(now, state, options, gone);
  gone.merge(ends_of_broken_links(now, state, options, gone));
  return gone;
}

}  // namespace sinew::cluster
