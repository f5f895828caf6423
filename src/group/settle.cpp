#include "group/settle.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::group {
namespace {

std::string name(MemberId id) {
  return "member " + std::to_string(id.value);
}

// Whose beginning is the group's: of one that has computed with the others already, for the group went on from it; else
// the furthest, for it has the newest checkpoint and the work in it is not to be lost.
std::optional<MemberId> measure_of_origins(const std::vector<MemberId>& ids, const std::map<MemberId, Here>& heres) {
  const auto rank = [&](MemberId id) {
    const Here& here = heres.at(id);
    return std::pair(here.computed_before, here.origin->step);
  };
  std::optional<MemberId> best;
  for (const MemberId id : ids) {
    if (heres.at(id).origin && (!best || rank(id) > rank(*best))) best = id;
  }
  return best;
}

// Those of a fresh view must begin with the same state. Who has it of another step comes again and is sent the group's.
void compare_origins(const std::vector<MemberId>& ids, const std::map<MemberId, Here>& heres, Settled& settled) {
  const auto measure = measure_of_origins(ids, heres);
  if (!measure) return;
  const Origin right = *heres.at(*measure).origin;
  // All that went on were sent the state: nobody knows what the group began with.
  const bool unknown = !heres.at(*measure).computed_before &&
                       std::ranges::any_of(ids, [&](MemberId id) { return heres.at(id).computed_before; });
  for (const MemberId id : ids) {
    const auto& origin = heres.at(id).origin;
    if (origin && unknown) settled.out[id] = "the group went on without it";
    if (!origin || unknown || origin == right) continue;
    if (origin->step == right.step) {
      settled.conflict = name(*measure) + " and " + name(id) + " begin with different states";
      settled.hint = "all members must run the same job, data and program, from the same checkpoint";
      return;
    }
    settled.out[id] = "it began at step " + std::to_string(origin->step) + ", " + name(*measure) + " at step " +
                      std::to_string(right.step);
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
  auto ids = view.computing();
  Settled settled;
  compare_origins(ids, heres, settled);
  std::erase_if(ids, [&](MemberId id) { return settled.out.contains(id); });
  for (const MemberId id : ids) settled.round = std::max(settled.round, heres.at(id).round);
  settled.giver = giver_of(ids, heres, settled.round);
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
