#include "group/settle.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::group {
namespace {

// Returns the member whose origin counts for the group. This is a member that has already computed with the group,
// because the group continued from its origin. If there is no such member, it is the member with the highest step,
// because its checkpoint contains the most work.
std::optional<MemberId> measure_of_origins(const std::vector<MemberId>& ids,
                                           const std::map<MemberId, ViewChangeReport>& reports) {
  const auto rank = [&](MemberId id) {
    const ViewChangeReport& report = reports.at(id);
    return std::pair(report.computed_before, report.origin->step);
  };
  std::optional<MemberId> best;
  for (const MemberId id : ids) {
    if (reports.at(id).origin && (!best || rank(id) > rank(*best))) best = id;
  }
  return best;
}

// All members that begin with a fresh view must have the same state. Fences a member that began at another step; it
// then joins again and receives the group's state. Two different states of one step are a conflict.
void compare_origins(const std::vector<MemberId>& ids, const std::map<MemberId, ViewChangeReport>& reports,
                     Settled& settled) {
  const auto measure = measure_of_origins(ids, reports);
  if (!measure) return;
  const Origin right = *reports.at(*measure).origin;
  // No member knows the group's origin if all members that computed had received their state as joiners.
  const bool unknown = !reports.at(*measure).computed_before &&
                       std::ranges::any_of(ids, [&](MemberId id) { return reports.at(id).computed_before; });
  for (const MemberId id : ids) {
    const auto& origin = reports.at(id).origin;
    if (origin && unknown) settled.fenced[id] = "the group went on without it";
    if (!origin || unknown || origin == right) continue;
    if (origin->step == right.step) {
      settled.conflict =
          Error("GROUP_STATES_DIFFER",
                member_name(*measure) + " and " + member_name(id) + " begin with different states of one step",
                "run the same job, data and program on all members, from the same checkpoint");
      return;
    }
    settled.fenced[id] = "it began at step " + std::to_string(origin->step) + ", " + member_name(*measure) +
                         " at step " + std::to_string(right.step);
  }
}

// Returns, of the members at this collective, the lowest one that computed in its previous view, because it knows what
// the group did. If there is no such member, returns the lowest member at this collective.
MemberId giver_of(const std::vector<MemberId>& ids, const std::map<MemberId, ViewChangeReport>& reports,
                  int64_t collective) {
  std::optional<MemberId> lowest;
  for (const MemberId id : ids) {
    if (reports.at(id).collective != collective) continue;
    if (reports.at(id).computed_before) return id;
    if (!lowest) lowest = id;
  }
  SINEW_CHECK(lowest, collective);
  return *lowest;
}

void add_held(MemberId id, const std::vector<bool>& held, Settled& settled) {
  if (held.empty()) return;
  if (settled.held.empty()) settled.held.resize(held.size());
  if (settled.held.size() != held.size()) {
    settled.conflict =
        MembersDiffer("the members compute different things in collective " + std::to_string(settled.collective) +
                          ": it has " + std::to_string(held.size()) + " shards on " + member_name(id) + ", and " +
                          std::to_string(settled.held.size()) + " on others",
                      {});
    return;
  }
  for (size_t s = 0; s < held.size(); ++s) {
    if (held[s] && !settled.held[s]) settled.held[s] = id;
  }
}

// Returns whether a member knows that the group continues from its state. A joiner knows this once it has computed with
// its donors. Before that, the donors may have continued under the previous view, beyond the results that they sent to
// the joiner.
bool is_witness(const ViewChangeReport& report) {
  return report.computed_before || report.origin;
}

}  // namespace

Settled settle(const cluster::View& view, const std::map<MemberId, ViewChangeReport>& reports) {
  auto ids = view.computing();
  Settled settled;
  compare_origins(ids, reports, settled);
  std::erase_if(ids, [&](MemberId id) { return settled.fenced.contains(id); });
  for (const MemberId id : ids) settled.collective = std::max(settled.collective, reports.at(id).collective);
  settled.giver = giver_of(ids, reports, settled.collective);
  if (std::ranges::none_of(ids, [&](MemberId id) { return is_witness(reports.at(id)); })) {
    for (const MemberId id : ids)
      settled.fenced[id] = "those who gave it the state are gone, and may have gone on from it";
    return settled;
  }
  const auto& history = reports.at(settled.giver).history;
  for (const MemberId id : ids) {
    const ViewChangeReport& report = reports.at(id);
    if (report.collective != settled.collective) continue;
    if (report.history && history && report.history != history) {
      settled.fenced[id] = "it followed a collective that the group made anew";
    } else {
      add_held(id, report.held, settled);
    }
  }
  return settled;
}

}  // namespace sinew::group
