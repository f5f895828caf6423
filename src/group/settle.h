// Where a group goes on after its view changed: a pure function of what its members said. Private to group/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "group/group_frames.h"

namespace sinew::group {

struct Settled {
  int64_t collective = 0;  // the first whose root no computing member has: it is made under this view
  MemberId giver;          // hands the roots before to those who lack them
  std::vector<std::optional<MemberId>> held;  // by shard of that round: who has it; empty: nobody is in it yet
  std::map<MemberId, std::string> fenced;     // computing members that can not go on, each with the reason
  std::string conflict;                       // the members can not be one group; empty: they can
  std::string hint;
};

// `heres` holds what at least all computing members of the view said.
Settled settle(const cluster::View& view, const std::map<MemberId, ViewChangeReport>& reports);

}  // namespace sinew::group
