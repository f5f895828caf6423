// Views: what happens when somebody came, went, or changed its share.
//
// A view begins with everybody saying where it is (`here`). What was on its way under the view before is dropped by
// all: a root that somebody got whole is handed over by one of those who have it, any other is made anew under the new
// view, so no two members can have roots of one round that were made under different views. Results of shards stay
// where they are. The group goes on as soon as all computing members have spoken; joining seats are not waited for.
#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {
namespace {

std::string name(MemberId id) {
  return "member " + std::to_string(id.value);
}

// Why this member can not take part in that view; empty: it can.
std::string why_not(const cluster::View& view, MemberId me, bool has_state) {
  if (view.find(me) == nullptr) return name(me) + " is not in the group any more: " + view.why;
  if (!view.lead()) return "nobody computes in the group any more";
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
      return state.end_life(why);
  }
  std::vector<link::Peer> peers;
  for (const cluster::Seat& seat : view.seats) {
    if (seat.id != state.me) peers.push_back({seat.id, seat.address});
  }
  state.links.connect(peers);  // before any frame of this view can be sent
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
  moves();
  given_up.clear();
  heres.clear();
  settled.reset();
  inboxes.clear();
  gatherings.clear();
  if (first || (view->fresh && !started)) {
    born = computing;
    if (born && started) history = round_history = 0;
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
  if (!computing || started) tell_where_i_am(outbox);
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

// What is said here stands for the whole view: shards in a lane's hands count as held.
void Group::State::tell_where_i_am(Outbox& outbox) {
  Here here;
  here.round = have.value_or(-1);
  here.history = history;
  here.joining = !computing;
  here.computed_before = computed_before;
  if (born) here.origin = origin;
  if (open && have && open->round == *have && computing) {
    for (const LeafSlot& slot : open->leaves) here.held.push_back(slot.state != LeafSlot::State::untouched);
  }
  send_to_others(Kind::here, here.round, 0, std::make_shared<const link::Bytes>(encode(here)), true, outbox);
  heres[me] = std::move(here);
}

void Group::State::settle(Outbox& outbox) {
  if (!view || settled || ended()) return;
  for (const MemberId id : view->computing()) {
    if (!heres.contains(id)) return;
  }
  Settled result = group::settle(*view, heres);
  if (!result.conflict.empty()) return fail(result.conflict, result.hint);
  if (const auto mine = result.out.find(me); mine != result.out.end())
    return end_life(name(me) + " is out: " + mine->second);
  settled = std::move(result);
  if (!computing && !have) have = settled->round;  // the first that is made with this seat in the view
  if (!computing && heres.at(me).round < 0 && *have < settled->round) {
    return end_life("the state " + name(me) + " was sent is older than the roots it can have");
  }
  for (const auto& [id, here] : heres) hand_over(id, here, outbox);
  complete();
  make_plan();
}

// One who has the roots another lacks sends them: the giver, so that they come once.
void Group::State::hand_over(MemberId to, const Here& here, Outbox& outbox) {
  if (!settled || settled->giver != me || to == me || here.round < 0 || here.round >= settled->round) return;
  if (!records.contains(here.round)) return outbox.add(to, frame(Kind::gone, here.round, 0, nullptr)), void();
  for (int64_t of = here.round; of < settled->round; ++of) {
    const Record& record = *records.at(of);
    for (size_t i = 0; i < record.pieces.size(); ++i) {
      outbox.add(to, frame(Kind::root_piece, of, static_cast<int64_t>(i), record.pieces[i]));
    }
    outbox.add(to, frame(Kind::root_small, of, 0, record.small_bytes));
  }
}

void Group::State::keep_early(MemberId from, link::Frame one) {
  early_bytes += sizeof one + (one.payload ? one.payload->size() : 0);
  early.emplace_back(from, std::move(one));
  if (early_bytes > most_early()) {
    end_life(name(me) + " has not heard of the group's view for too long: what it was sent does not fit any more");
  }
}

void Group::State::take(MemberId from, const link::Frame& one, Outbox& outbox) {
  const cluster::Seat* seat = view->find(from);
  if (seat == nullptr || from == me) return;
  switch (static_cast<Kind>(one.kind)) {
    case Kind::here: {
      if (heres.contains(from)) return;
      const auto here = one.payload ? decode_here(*one.payload) : std::unexpected(std::string("nothing"));
      if (!here) return end_life(name(from) + " sent " + here.error());
      if (here->joining != seat->joining) return end_life(name(from) + " takes itself for another seat than the view");
      heres[from] = *here;
      if (settled) return hand_over(from, *here, outbox);
      return settle(outbox);
    }
    case Kind::sums:
    case Kind::small: return take_sums(from, one);
    case Kind::root_piece:
    case Kind::root_small: return take_root(from, one);
    case Kind::progress: return;  // that it came is all it says
    case Kind::gone:
      return end_life(name(me) + " is too far behind: nobody has the root of round " + std::to_string(one.round) +
                      " any more");
  }
}

std::string Group::State::waiting_for() const {
  if (!view) return "no view of the group has come";
  std::string silent;
  if (!settled) {
    for (const MemberId id : view->computing()) {
      if (!heres.contains(id)) silent += (silent.empty() ? "" : ", ") + std::to_string(id.value);
    }
    return "view " + std::to_string(view->generation.value) + " waits to hear where these members are: " + silent;
  }
  if (open && open->plan && open->plan->missing > 0) {
    return std::to_string(open->plan->missing) + " shards are being computed here";
  }
  return "sums or roots of other members have not come";
}

}  // namespace sinew::group
