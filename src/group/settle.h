// Finds the point from which a group continues after a view change: a pure function of the members' reports. Private to
// group/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/cluster.h"
#include "group/group_frames.h"

namespace sinew::group {

struct Settled {
  // the first collective whose result no computing member has; the group makes it under this view
  int64_t collective = 0;
  MemberId giver;  // the member that sends earlier results to members that lack them
  std::vector<std::optional<MemberId>>
      // for each shard of `collective`: the member that has its result; empty if no member has begun the collective
      held;
  std::map<MemberId, std::string> fenced;  // computing members that cannot continue, each with the reason
  std::optional<Error> conflict;           // set if the members cannot be one group
};

// `reports` must contain the reports of at least all computing members of the view.
Settled settle(const cluster::View& view, const std::map<MemberId, ViewChangeReport>& reports);

}  // namespace sinew::group
