// The parts of the decision who is here, each pure and each with its reason; next_view puts them together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace sinew::cluster {

// Members whose links say nothing for so many times silence_seconds are put out even if nobody else has the state.
constexpr double kPatienceWithTheLast = 10;

// Who is gone, each with the reason: known to be lost, silent, or at the broken end of a link. Among those who are
// silent the last ones with the state are waited for longer: without them the run falls back to its checkpoint.
std::map<MemberId, std::string> gone_members(double now, const ClusterState& state, const ClusterOptions& options);

// Of the pairs whose link broke, the fewest that have to go: first who most say is lost, then, once the reports had
// time to come in, whoever is reported by more, else joins, else has the higher id.
std::map<MemberId, std::string> ends_of_broken_links(double now, const ClusterState& state,
                                                     const ClusterOptions& options,
                                                     const std::map<MemberId, std::string>& gone);

// New shares by speed for the seats that compute and stay, and what to say about it; empty `why`: no change worth a
// view. A member not measured yet counts as the mean of the others.
struct Shares {
  std::map<MemberId, double> by_id;
  std::string why;
};
Shares shares_by_speed(const std::vector<ViewMember>& members, const ClusterState& state,
                       const ClusterOptions& options);

// The state after a decision: who is out is forgotten; a view nobody who computes is left of is buried.
void apply(const Decision& decision, double now, ClusterState& state);

std::string list_of(const std::vector<MemberId>& ids);  // "1, 2 and 4"
std::string seconds_text(double seconds);               // "1.2 s"

}  // namespace sinew::cluster
