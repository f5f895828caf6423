#include "group/settle.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::group {
namespace {

std::string name(MemberId id) {
  return "member " + std::to_string(id.value);
}

// Those of a fresh view must begin with the same state.
void compare_origins(const std::vector<MemberId>& ids, const std::map<MemberId, Here>& heres, Settled& settled) {
  std::optional<MemberId> first;
  for (const MemberId id : ids) {
    const auto& origin = heres.at(id).origin;
    if (!origin) continue;
    if (!first) first = id;
    if (heres.at(*first).origin == origin) continue;
    settled.conflict = name(*first) + " and " + name(id) + " begin with different states";
    settled.hint = "all members must run the same job, data and program, from the same checkpoint";
    return;
  }
}

// The lowest that is at the round; of those before all others one that computed in the view before: what it knows is
// what the group did.
MemberId giver_of(const std::vector<MemberId>& ids, const std::map<MemberId, Here>& heres, int64_t round) {
  std::optional<MemberId> lowest;
  for (const MemberId id : ids) {
    if (heres.at(id).round != round) continue;
    if (heres.at(id).computed_before) return id;
    if (!lowest) lowest = id;
  }
  SINEW_CHECK(lowest, round);
  return *lowest;
}

void add_held(MemberId id, const std::vector<bool>& held, Settled& settled) {
  if (held.empty()) return;
  if (settled.held.empty()) settled.held.resize(held.size());
  if (settled.held.size() != held.size()) {
    settled.conflict = name(id) + " takes round " + std::to_string(settled.round) + " to have " +
                       std::to_string(held.size()) + " shards, others " + std::to_string(settled.held.size());
    settled.hint = "all members must run the same job and program";
    return;
  }
  for (size_t s = 0; s < held.size(); ++s) {
    if (held[s] && !settled.held[s]) settled.held[s] = id;
  }
}

// One who was sent its state knows that the group goes on from it once it has computed with those who gave it. Before
// that they may have gone on by themselves, under the view before, further than the roots it was sent.
bool is_witness(const Here& here) {
  return here.computed_before || here.origin;
}

}  // namespace

Settled settle(const cluster::View& view, const std::map<MemberId, Here>& heres) {
  const auto ids = view.computing();
  Settled settled;
  for (const MemberId id : ids) settled.round = std::max(settled.round, heres.at(id).round);
  settled.giver = giver_of(ids, heres, settled.round);
  compare_origins(ids, heres, settled);
  if (std::ranges::none_of(ids, [&](MemberId id) { return is_witness(heres.at(id)); })) {
    for (const MemberId id : ids)
      settled.out[id] = "those who gave it the state are gone, and may have gone on from it";
    return settled;
  }
  const auto& history = heres.at(settled.giver).history;
  for (const MemberId id : ids) {
    const Here& here = heres.at(id);
    if (here.round != settled.round) continue;
    if (here.history && history && here.history != history) {
      settled.out[id] = "it followed a round that the group made anew";
    } else {
      add_held(id, here.held, settled);
    }
  }
  return settled;
}

}  // namespace sinew::group
