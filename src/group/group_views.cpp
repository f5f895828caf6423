// Handles view changes: a member came, left, or got another share of the work.
//
// When a view begins, every member sends a ViewChangeReport and drops the frames of the previous view. From the
// reports, all members choose the same giver (settle.h). The giver sends the results of complete collectives to members
// that lack them. A collective that no member has completed is made again under the new view. Therefore all results of
// one collective were made under the same view, on whichever members they are. A computing member keeps the shards that
// it has computed or is computing, and they are not computed anew. The group continues as soon as all computing members
// have reported; it does not wait for joining members.
#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {
namespace {

// Returns the reason why this member cannot take part in that view, or an empty string if it can.
std::string why_not(const cluster::View& view, MemberId me, bool has_state) {
  if (view.find(me) == nullptr) return member_name(me) + " is not in the group any more: " + view.why;
  if (!view.leader()) return "nobody computes in the group any more";
  if (view.fresh && has_state) return "the group began anew without this member's state";
  return "";
}

}  // namespace

void Group::adopt(const cluster::View& view) {
  State& state = *state_;
  const std::lock_guard adopting(state.adopting);
  {
    const std::lock_guard lock(state.mutex);
    if (state.ended() || (state.view && view.generation <= state.view->generation)) return;
    if (const auto why = why_not(view, state.me, state.started && state.have.value_or(0) > 0); !why.empty())
      return state.fence(why);
  }
  std::vector<link::Peer> peers;
  for (const cluster::ViewMember& view_member : view.members) {
    if (view_member.id != state.me) peers.push_back({view_member.id, view_member.address});
  }
  state.links.connect(peers);  // before this member sends a frame of this view
  Outbox outbox;
  {
    const std::lock_guard lock(state.mutex);
    if (state.ended()) return;
    state.enter(view, outbox);
    state.changed.notify_all();
  }
  state.send(outbox);
}

void Group::State::enter(const cluster::View& next, Outbox& outbox) {
  const bool first = !view.has_value();
  computed_before = computing && (computed_before || settled);
  computing = !next.find(me)->joining;
  view = next;
  note_progress();
  given_up.clear();
  reports.clear();
  settled.reset();
  inboxes.clear();
  gatherings.clear();
  if (first || (view->fresh && !started)) {
    born = computing;
    if (born && started) history = collective_history = 0;
    if (!started) have.reset();
    if (!started) records.clear();
  }
  if (open) {
    if (open->plan && !open->first_mine) {
      open->first_mine.emplace();
      for (const MemberId owner : open->plan->owners) open->first_mine->push_back(owner == me);
    }
    open->plan.reset();
  }
  if (!computing || started) send_view_change_report(outbox);
  const auto waiting = std::exchange(early, {});
  early_bytes = 0;
  for (const auto& [from, one] : waiting) {
    if (one.generation == view->generation) {
      take(from, one, outbox);
    } else if (one.generation > view->generation) {
      keep_early(from, one);
    }
  }
  settle(outbox);
}

// Sends the report. It is valid for the whole view, so a shard that a lane is computing counts as held.
void Group::State::send_view_change_report(Outbox& outbox) {
  ViewChangeReport report;
  report.collective = have.value_or(-1);
  report.history = history;
  report.joining = !computing;
  report.computed_before = computed_before;
  if (born) report.origin = origin;
  if (open && have && open->collective == *have && computing) {
    for (const LeafSlot& slot : open->leaves) report.held.push_back(slot.state != LeafSlot::State::untouched);
  }
  send_to_others(Kind::view_change_report, report.collective, 0, std::make_shared<const link::Bytes>(encode(report)),
                 true, outbox);
  reports[me] = std::move(report);
}

void Group::State::settle(Outbox& outbox) {
  if (!view || settled || ended()) return;
  for (const MemberId id : view->computing()) {
    if (!reports.contains(id)) return;
  }
  Settled result = group::settle(*view, reports);
  if (result.conflict) return fail(*result.conflict);
  if (const auto mine = result.fenced.find(me); mine != result.fenced.end())
    return fence(member_name(me) + " is out: " + mine->second);
  settled = std::move(result);
  if (!computing && !have)
    have = settled->collective;  // the first collective that is made with this member in the view
  if (!computing && reports.at(me).collective < 0 && *have < settled->collective) {
    return fence("the state " + member_name(me) + " was sent is older than the reduced results it can have");
  }
  for (const auto& [id, report] : reports) hand_over(id, report, outbox);
  complete();
  make_plan();
}

// Sends results to a member that lacks them. Only the giver that settle() chose does this, so that they are sent once.
void Group::State::hand_over(MemberId to, const ViewChangeReport& report, Outbox& outbox) {
  if (!settled || settled->giver != me || to == me || report.collective < 0 || report.collective >= settled->collective)
    return;
  if (!records.contains(report.collective))
    return outbox.add(to, frame(Kind::gone, report.collective, 0, nullptr)), void();
  for (int64_t of = report.collective; of < settled->collective; ++of) {
    const Record& record = *records.at(of);
    for (size_t i = 0; i < record.pieces.size(); ++i) {
      outbox.add(to, frame(Kind::reduced_piece, of, static_cast<int64_t>(i), record.pieces[i]));
    }
    outbox.add(to, frame(Kind::reduced_head, of, 0, record.small_bytes));
  }
}

void Group::State::keep_early(MemberId from, link::Frame one) {
  early_bytes += sizeof one + (one.payload ? one.payload->size() : 0);
  early.emplace_back(from, std::move(one));
  if (early_bytes > most_early()) {
    fence(member_name(me) + " has not heard of the group's view for too long: what it was sent does not fit any more");
  }
}

void Group::State::take(MemberId from, const link::Frame& one, Outbox& outbox) {
  const cluster::ViewMember* view_member = view->find(from);
  if (view_member == nullptr || from == me) return;
  switch (static_cast<Kind>(one.kind)) {
    case Kind::view_change_report: {
      if (reports.contains(from)) return;
      const auto report =
          one.payload ? decode_view_change_report(*one.payload) : std::unexpected(std::string("nothing"));
      if (!report) return fence(member_name(from) + " sent " + report.error());
      if (report->joining != view_member->joining)
        return fence(member_name(from) + " reports another phase than its view");
      reports[from] = *report;
      if (settled) return hand_over(from, *report, outbox);
      return settle(outbox);
    }
    case Kind::sums:
    case Kind::small: return take_sums(from, one);
    case Kind::reduced_piece:
    case Kind::reduced_head: return take_result(from, one);
    case Kind::audit: return take_opinion(from, one);
    case Kind::progress: return;  // the frame has no content; on_frame has already counted it as progress
    case Kind::gone:
      return fence(member_name(me) + " is too far behind: nobody has the reduced result of collective " +
                   std::to_string(one.collective) + " any more");
  }
}

std::string Group::State::waiting_for() const {
  if (!view) return "no view of the group has come";
  std::string silent;
  if (!settled) {
    for (const MemberId id : view->computing()) {
      if (!reports.contains(id)) silent += (silent.empty() ? "" : ", ") + std::to_string(id.value);
    }
    return "view " + std::to_string(view->generation.value) + " waits to hear where these members are: " + silent;
  }
  if (open && open->plan && open->plan->missing > 0) {
    return std::to_string(open->plan->missing) + " shards are being computed here";
  }
  return "sums or reduced results of other members have not come";
}

}  // namespace sinew::group
