// Whether the members of a group still have one state: a pure function of their marks. Private to group/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "group/group.h"

namespace sinew::group {

struct Agreement {
  std::optional<Mark> mark;        // the mark of all members, or of more than half of them; nullopt if there is no such
  std::vector<MemberId> outvoted;  // the members with another mark, ascending; only if `mark` is set
  bool split = false;              // there are marks, and none of them is that of more than half of the members
};

// A member that gave no mark does not count.
Agreement agreement_of(const std::vector<MemberMark>& marks);

// Describes a disagreement: the members, the step, and the digests. `name` returns how a member is named.
std::string disagreement_text(const std::vector<MemberMark>& marks, const Agreement& agreement,
                              const std::function<std::string(MemberId)>& name);

}  // namespace sinew::group
