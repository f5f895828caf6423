// Receives reduced results, keeps them for a while, and checks that they belong together.
//
// All parts of a result come from frames of one view, and a new view drops all incomplete results, so the parts fit
// each other. Each result contains a digest of the control messages of all collectives before it. A joiner may have
// received a result that the group later repeated with another control message. Then the digests differ, and the joiner
// is fenced before it uses the wrong state.
#include <algorithm>

#include "base/check.h"
#include "group/group_state.h"

namespace sinew::group {
namespace {

constexpr int64_t kKept = 2;             // number of results kept for other members, if there are any
constexpr int64_t kKeptForJoiners = 16;  // most results kept if there are joining members

}  // namespace

void Group::State::begin_at(int64_t first, std::optional<uint64_t> history_there) {
  collective = first;
  collective_history = history_there;
  const bool results_here = have && first < *have;
  if (results_here && !records.contains(first)) {
    return fence("the state " + member_name(me) + " was sent is older than the reduced results it has");
  }
  records.erase(records.begin(), records.lower_bound(first));
  gatherings.erase(gatherings.begin(), gatherings.lower_bound(first));
  if (!results_here) {
    have = first;
    history = history_there;
  } else if (history_there && records.at(first)->small.before != *history_there) {
    fence("the state " + member_name(me) + " was sent followed a collective that the group made anew");
  }
  if (settled && *have < settled->collective && reports.at(me).collective < 0) {
    fence("the state " + member_name(me) + " was sent is older than the reduced results it can have");
  }
  complete();
}

// ---- receiving -----------------------------------------------------------------------------------------------------

void Group::State::take_result(MemberId from, const link::Frame& one) {
  if (!one.payload) return fence(member_name(from) + " sent an empty reduced result");
  if (have && one.collective < *have) return;  // the result is here already
  if (static_cast<Kind>(one.kind) == Kind::reduced_piece) {
    gather_piece(from, one.collective, one.part, one.payload);
  } else {
    gather_small(from, one.collective, one.payload);
  }
  complete();
}

void Group::State::gather_piece(MemberId from, int64_t of, int64_t part, Payload payload) {
  const auto head = decode_head(*payload);
  if (!head) return fence(member_name(from) + " sent " + head.error());
  Gathering& gathering = gatherings[of];
  const bool fits =
      head->nodes == 1 && part >= 0 && part < head->pieces &&
      (!gathering.head || (gathering.head->shape == head->shape && gathering.head->pieces == head->pieces));
  if (!fits)
    return fence(member_name(from) + " sent a piece of collective " + std::to_string(of) +
                 " that does not fit the others");
  gathering.head = *head;
  const size_t size = payload->size();
  if (gathering.pieces.emplace(part, std::move(payload)).second) gathering.bytes += size;
}

void Group::State::gather_small(MemberId from, int64_t of, Payload payload) {
  auto small = decode_reduced_head(*payload);
  if (!small) return fence(member_name(from) + " sent " + small.error());
  Gathering& gathering = gatherings[of];
  if (gathering.small) return;
  gathering.bytes += payload->size();
  gathering.small = std::move(*small);
  gathering.small_bytes = std::move(payload);
}

void Group::State::complete() {
  while (have && !ended()) {
    const auto found = gatherings.find(*have);
    if (found == gatherings.end()) break;
    Gathering& gathering = found->second;
    if (!gathering.small || gathering.small->pieces != static_cast<int64_t>(gathering.pieces.size())) break;
    if (gathering.head &&
        (gathering.head->shape != gathering.small->shape || gathering.head->pieces != gathering.small->pieces)) {
      return fence("the parts of the reduced result of collective " + std::to_string(*have) + " do not fit");
    }
    if (history && gathering.small->before != *history) {
      return fence(member_name(me) + " followed a collective that the group made anew");
    }
    auto record = std::make_shared<Record>();
    record->small = std::move(*gathering.small);
    record->small_bytes = std::move(gathering.small_bytes);
    for (auto& [part, payload] : gathering.pieces) record->pieces.push_back(std::move(payload));
    record->bytes = gathering.bytes;
    result_bytes = std::max(result_bytes, gathering.bytes);
    history = record->after();
    inboxes.erase(*have);
    records[*have] = std::move(record);
    gatherings.erase(found);
    have = *have + 1;
    forget();
    changed.notify_all();
  }
  if (computing) return;
  size_t bytes = 0;
  for (const auto& [of, record] : records) bytes += record->bytes;
  for (const auto& [of, gathering] : gatherings) bytes += gathering.bytes;
  if (bytes > most_for_joiner())
    fence(member_name(me) + " is too slow: the reduced results it waits to replay do not fit any more");
}

// ---- dropping ------------------------------------------------------------------------------------------------------

void Group::State::forget() {
  if (!have || !started) return;
  const bool joiners = view && std::any_of(view->members.begin(), view->members.end(),
                                           [](const auto& view_member) { return view_member.joining; });
  const bool others = view && view->members.size() > 1;
  const int64_t in_use = open ? open->collective : collective;
  size_t bytes = 0;
  while (!records.empty()) {
    const int64_t oldest = records.begin()->first;
    if (oldest >= in_use || (others && oldest >= *have - kKept)) return;
    if (joiners && oldest >= *have - kKeptForJoiners) {
      if (bytes == 0) {
        for (const auto& [of, record] : records) bytes += record->bytes;
      }
      if (bytes <= options.handover_bytes) return;
      bytes -= records.begin()->second->bytes;
    }
    records.erase(records.begin());
  }
}

std::expected<void, std::string> write_rows(const Record& record, const Shape& shape, const std::vector<float*>& out) {
  const std::string other = "the reduced result is not of the collective this member computes";
  if (record.small.shape != shape.digest || record.small.reduced.present.size() != shape.lengths.size())
    return std::unexpected(other);
  int64_t covered = 0;
  for (const Payload& piece : record.pieces) {
    const auto head = decode_head(*piece);
    if (!head || head->begin != covered || head->end > shape.floats() || head->nodes != 1)
      return std::unexpected(other);
    covered = head->end;
    const auto parts = row_parts(shape, head->begin, head->end);
    const auto values = read_block(*piece, *head, parts);
    if (!values) return std::unexpected(values.error());
    for (size_t i = 0; i < parts.size(); ++i) {
      float* row = out[static_cast<size_t>(parts[i].row)];
      if ((*values)[i] != nullptr && row != nullptr) std::copy_n((*values)[i], parts[i].count, row + parts[i].offset);
    }
  }
  if (covered != shape.floats()) return std::unexpected(other);
  return {};
}

}  // namespace sinew::group
