// Declares the parts of the decision on the next view. Each is a pure function that returns its reasons; next_view
// combines them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace sinew::cluster {

// If no other member has the state, a silent member is fenced only after this multiple of silence_seconds.
constexpr double kPatienceWithTheLast = 10;

// Returns the members that the group has lost, each with the reason: another process reported the loss, the member has
// not contacted this coordinator since it replaced a dead one, the member is silent, or it is at the end of a broken
// link. The coordinator waits longer for the last members that have the state, because without them the run falls back
// to its checkpoint.
std::map<MemberId, std::string> gone_members(double now, const ClusterState& state, const ClusterOptions& options);

// Chooses members to fence, one at a time, until no report of a broken link is left to act on. It first chooses members
// that most computing members report. Then, once other reports had time to arrive, it chooses the member that is cut
// off from the most computing members. Among equal ones it chooses a joining member, then the one with more reports,
// then the one with the higher id.
std::map<MemberId, std::string> ends_of_broken_links(double now, const ClusterState& state,
                                                     const ClusterOptions& options,
                                                     const std::map<MemberId, std::string>& gone);

// New shares, in proportion to the speeds of the computing members that stay, and a sentence that gives the reason. If
// `why` is empty, the change is too small for a new view. A member without a measured speed gets the mean speed of the
// others.
struct Shares {
  std::map<MemberId, double> by_id;
  std::string why;
};
Shares shares_by_speed(const std::vector<ViewMember>& members, const ClusterState& state,
                       const ClusterOptions& options);

// Applies a decision to the state: removes the fenced members, and drops the view if none of its computing members is
// left.
void apply(const Decision& decision, double now, ClusterState& state);

std::string list_of(const std::vector<MemberId>& ids);  // "1, 2 and 4"
std::string seconds_text(double seconds);               // "1.2 s"

}  // namespace sinew::cluster
