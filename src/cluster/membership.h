// The parts of the decision on the next view. Each is a pure function that returns its reasons; next_view combines
// them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace sinew::cluster {

// If no other member has the state, a silent member is fenced only after this many times silence_seconds.
constexpr double kPatienceWithTheLast = 10;

// Returns the members that are gone, each with the reason: a caller reported the loss, the member is silent, or it is
// at the broken end of a link. The coordinator waits longer for the last members that have the state, because without
// them the run falls back to its checkpoint.
std::map<MemberId, std::string> gone_members(double now, const ClusterState& state, const ClusterOptions& options);

// Chooses the fewest members that must go so that no broken link remains. Members that most computing members report go
// first. Then, once other reports had time to come, the member goes that is cut off from more computing members; of
// equal ones a joining member, then the one with more reports, then the one with the higher id.
std::map<MemberId, std::string> ends_of_broken_links(double now, const ClusterState& state,
                                                     const ClusterOptions& options,
                                                     const std::map<MemberId, std::string>& gone);

// New shares, in proportion to the speeds of the computing members that stay, and the sentence about them. An empty
// `why` means that the change is too small for a new view. A member that has no measured speed counts as the mean of
// the others.
struct Shares {
  std::map<MemberId, double> by_id;
  std::string why;
};
Shares shares_by_speed(const std::vector<ViewMember>& members, const ClusterState& state,
                       const ClusterOptions& options);

// Applies a decision to the state: forgets the fenced members, and drops a view of which no computing member is left.
void apply(const Decision& decision, double now, ClusterState& state);

std::string list_of(const std::vector<MemberId>& ids);  // "1, 2 and 4"
std::string seconds_text(double seconds);               // "1.2 s"

}  // namespace sinew::cluster
