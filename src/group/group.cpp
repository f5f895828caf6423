// Implements the public interface of Group: a collective as the step thread and its lanes see it.
#include "group/group.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {

// ---- the end of this incarnation ------------------------------------------------------------------------------------

void Group::State::check_alive() const {
  if (failure) std::rethrow_exception(failure);
  if (out) throw Fenced(*out);
}

void Group::State::fence(const std::string& why) {
  if (!ended()) out = why;
  changed.notify_all();
}

void Group::State::fail(const Error& error) {
  if (!ended()) failure = std::make_exception_ptr(error);
  changed.notify_all();
}

// ---- frames --------------------------------------------------------------------------------------------------------

link::Frame Group::State::frame(Kind kind, int64_t of_collective, int64_t part, Payload payload) const {
  return {static_cast<uint16_t>(kind), view->generation, of_collective, part, std::move(payload)};
}

void Group::State::send_to_others(Kind kind, int64_t of_collective, int64_t part, Payload payload, bool joiners,
                                  Outbox& outbox) {
  for (const cluster::ViewMember& view_member : view->members) {
    if (view_member.id == me || (view_member.joining && !(joiners && takes(view_member.id, outbox)))) continue;
    outbox.add(view_member.id, frame(kind, of_collective, part, payload));
  }
}

void Group::State::send(Outbox& outbox) {
  for (auto& [to, one] : outbox.frames) links.send(to, std::move(one));
  for (const auto& [peer, why] : outbox.lost) {
    if (options.on_lost) options.on_lost(peer, why);
  }
  for (const auto& [peer, why] : outbox.wrong) {
    if (options.on_wrong) options.on_wrong(peer, why);
  }
  outbox = {};
}

// ---- calls from outside ---------------------------------------------------------------------------------------------

Group::Group(MemberId me, link::Links& links, GroupOptions options, Clock& clock)
    : state_(std::make_unique<State>(me, links, std::move(options), clock)) {
  SINEW_CHECK(state_->options.piece_floats > 0, state_->options.piece_floats);
}

Group::~Group() = default;

void Group::fence(const std::string& why) {
  const std::lock_guard lock(state_->mutex);
  state_->fence(why);
}

void Group::on_frame(MemberId from, link::Frame frame) {
  State& state = *state_;
  Outbox outbox;
  {
    const std::lock_guard lock(state.mutex);
    if (state.ended()) return;
    state.note_progress();
    state.learn_result_size(frame);
    if (!state.view || frame.generation > state.view->generation) {
      state.keep_early(from, std::move(frame));
    } else if (frame.generation == state.view->generation) {
      state.take(from, frame, outbox);
    }  // otherwise the view is over, and the members repeat the work or hand the results over
    state.changed.notify_all();
  }
  state.send(outbox);
}

// ---- collectives ----------------------------------------------------------------------------------------------------

void Group::start_at(int64_t collective, Origin origin, std::optional<uint64_t> history) {
  State& state = *state_;
  Outbox outbox;
  {
    const std::lock_guard lock(state.mutex);
    state.check_alive();
    SINEW_CHECK(!state.started && collective >= 0, collective);
    state.started = true;
    state.origin = origin;
    if (state.born) history = 0;
    state.begin_at(collective, history);
    if (state.view && state.computing) state.send_view_change_report(outbox);
    state.settle(outbox);
  }
  state.send(outbox);
  const std::lock_guard lock(state.mutex);
  state.check_alive();
}

void Group::begin(int64_t shards, std::vector<int64_t> lengths, std::string control_message, std::optional<Mark> mark,
                  Audit audit, Purpose purpose) {
  State& state = *state_;
  auto shape = std::make_shared<const Shape>(shards, std::move(lengths), purpose);
  const std::lock_guard lock(state.mutex);
  state.check_alive();
  SINEW_CHECK(state.started && !state.open, state.started, state.collective);
  state.open.emplace();
  state.open->collective = state.collective++;
  state.open->shape = std::move(shape);
  state.open->control_message = std::move(control_message);
  state.open->mark = mark;
  state.open->audit = std::move(audit);
  state.open->compare = state.wants_comparison;
  state.open->leaves.resize(static_cast<size_t>(shards));
  state.note_progress();
  state.open->began = state.looked;
  state.result_bytes = std::max(state.result_bytes, static_cast<size_t>(state.open->shape->floats()) * sizeof(float));
  state.make_plan();
}

std::optional<ShardTask> Group::next_shard() {
  std::unique_lock lock(state_->mutex);
  while (true) {
    const Turn turn = state_->take_turn(lock);
    if (turn.kind == Turn::Kind::shard) return ShardTask{turn.shard, turn.audit};
    if (turn.kind == Turn::Kind::over) return std::nullopt;
    if (turn.kind == Turn::Kind::idle) state_->wait(lock);
  }
}

Group::Turn Group::turn() {
  std::unique_lock lock(state_->mutex);
  return state_->take_turn(lock);
}

Group::Turn Group::State::take_turn(std::unique_lock<std::mutex>& lock) {
  check_alive();
  SINEW_CHECK(open, collective);
  if (const auto record = records.find(open->collective); record != records.end()) {
    if (!open->judged) judge_marks(record->second->small.reduced);
    check_alive();
    return {Turn::Kind::over};
  }
  Outbox outbox;
  act_on_audits(outbox);
  if (!outbox.empty()) {
    lock.unlock();
    send(outbox);  // before check_alive(): the others need this member's results even if it ends
    lock.lock();
    check_alive();
    return {Turn::Kind::worked};
  }
  check_alive();
  if (open->plan && !open->plan->todo.empty()) {
    const int64_t shard = open->plan->todo.front();
    open->plan->todo.pop_front();
    open->leaves[static_cast<size_t>(shard)].state = LeafSlot::State::in_hand;
    if (open->first_mine && !(*open->first_mine)[static_cast<size_t>(shard)]) ++counts.healed;
    return {Turn::Kind::shard, ShardIndex(shard)};
  }
  if (auto work = claim()) {
    do_work(*work, lock);
    return {Turn::Kind::worked};
  }
  if (const auto shard = next_audit()) return {Turn::Kind::shard, *shard, true};
  check_timeout(outbox);
  if (!outbox.empty()) {
    lock.unlock();
    send(outbox);
    lock.lock();
  }
  return {Turn::Kind::idle};
}

// Runs the work without the mutex. Its result counts only if the view is still the same afterwards.
void Group::State::do_work(const Work& work, std::unique_lock<std::mutex>& lock) {
  const Generation generation = view->generation;
  lock.unlock();
  Commit commit;
  std::exception_ptr trouble;
  try {
    commit = work();
  } catch (...) {
    trouble = std::current_exception();
  }
  lock.lock();
  if (ended() || view->generation != generation) return;
  if (trouble) {
    failure = trouble;
    changed.notify_all();
    return;
  }
  Outbox outbox;
  commit(outbox);
  changed.notify_all();
  lock.unlock();
  send(outbox);
  lock.lock();
}

void Group::State::wait(std::unique_lock<std::mutex>& lock) {
  const bool own_work = open && open->plan && open->plan->missing > 0;  // another lane of this member computes
  const bool others = view && view->members.size() > 1;
  const double began = clock.monotonic_seconds();
  changed.wait_for(lock, std::chrono::milliseconds(200));
  if (others && !own_work) counts.waited_seconds += clock.monotonic_seconds() - began;
}

void Group::deliver(ShardIndex shard, std::optional<Leaf> leaf) {
  State& state = *state_;
  Outbox outbox;
  {
    const std::lock_guard lock(state.mutex);
    state.check_alive();
    SINEW_CHECK(state.open && shard.value >= 0 && shard.value < state.open->shape->shards, shard);
    Open& open = *state.open;
    LeafSlot& slot = open.leaves[static_cast<size_t>(shard.value)];
    SINEW_CHECK(slot.state == LeafSlot::State::in_hand, shard);
    SINEW_CHECK(!leaf || leaf->rows.empty() || leaf->rows.size() == open.shape->lengths.size(), leaf->rows.size());
    slot.state = LeafSlot::State::delivered;
    slot.leaf = std::move(leaf);
    ++state.counts.computed;
    state.note_progress();
    state.send_progress(outbox);
    if (open.plan && open.plan->owners[static_cast<size_t>(shard.value)] == state.me) --open.plan->missing;
    state.changed.notify_all();
  }
  state.send(outbox);
}

Reduced Group::finish(const std::vector<float*>& out) {
  State& state = *state_;
  std::shared_ptr<const Record> record;
  std::shared_ptr<const Shape> shape;
  {
    const std::lock_guard lock(state.mutex);
    state.check_alive();
    SINEW_CHECK(state.open && state.records.contains(state.open->collective) && state.open->judged, state.collective);
    record = state.records.at(state.open->collective);
    shape = state.open->shape;
  }
  SINEW_CHECK(out.size() == shape->lengths.size(), out.size(), shape->lengths.size());
  const auto written = write_rows(*record, *shape, out);
  std::optional<Open> over;  // destroyed after the mutex is released, because Leaf::keep runs code of the leaf's owner
  const std::lock_guard lock(state.mutex);
  if (!written)
    state.fence(member_name(state.me) + " computes something else than the group in collective " +
                std::to_string(state.open->collective) + ": " + written.error());
  state.check_alive();
  over.swap(state.open);
  if (over->plan) state.learn_usual_collective(state.clock.monotonic_seconds() - over->began);
  state.collective_history = record->after();
  if (record->small.reduced.compare) state.wants_comparison = false;
  if (over->mark && over->mark->part == Mark::kWhole && !record->small.reduced.marks.empty()) state.compared = true;
  ++state.counts.collectives;
  state.forget();
  Reduced reduced = record->small.reduced;
  reduced.wrong = std::move(over->wrong);
  return reduced;
}

// ---- queries -------------------------------------------------------------------------------------------------------

bool Group::expects(int64_t shard, int64_t shards) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->view || !state_->computing || state_->ended() || shard < 0 || shard >= shards) return false;
  auto& guess = state_->guess;
  if (guess.generation != state_->view->generation || static_cast<int64_t>(guess.owners.size()) != shards) {
    guess = {state_->view->generation, cluster::plan_shards(*state_->view, shards)};
  }
  return guess.owners[static_cast<size_t>(shard)] == state_->me;
}

void Group::ask_to_compare() {
  const std::lock_guard lock(state_->mutex);
  state_->wants_comparison = true;
}

bool Group::compared() const {
  const std::lock_guard lock(state_->mutex);
  return state_->compared;
}

bool Group::has_peers() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->view) return false;
  return std::ranges::any_of(state_->view->members,
                             [&](const auto& one) { return one.id != state_->me && !one.joining; });
}

bool Group::ahead() const {
  const std::lock_guard lock(state_->mutex);
  return state_->records.contains(state_->collective);
}

bool Group::may_give_state() const {
  const std::lock_guard lock(state_->mutex);
  return state_->settled && state_->have == state_->collective;
}

int64_t Group::collective() const {
  const std::lock_guard lock(state_->mutex);
  return state_->collective;
}

uint64_t Group::history() const {
  const std::lock_guard lock(state_->mutex);
  SINEW_CHECK(state_->started && !state_->open, state_->collective);
  return state_->collective_history.value_or(0);
}

MemberId Group::id() const {
  return state_->me;
}

cluster::View Group::view() const {
  const std::lock_guard lock(state_->mutex);
  return state_->view.value_or(cluster::View{});
}

Counts Group::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

NetworkUse Group::traffic() const {
  return state_->links.traffic();
}

}  // namespace sinew::group
