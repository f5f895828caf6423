// Finds out whether the members of a group still have one state: pure functions of their marks, and of what they
// compute. Private to group/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "group/group.h"
#include "group/group_frames.h"

namespace sinew::group {

struct Agreement {
  std::optional<Mark> mark;        // the mark of more than half of the members that gave one; nullopt if there is none
  std::vector<MemberId> outvoted;  // the members with another mark, ascending; only if `mark` is set
  // true: there are marks, but none is the mark of more than half of the members that gave one
  bool split = false;
};

// A member that gave no mark does not count.
Agreement agreement_of(const std::vector<MemberMark>& marks);

// Describes a disagreement: the members, the step, and the digests. `name` returns how a member is named.
std::string disagreement_text(const std::vector<MemberMark>& marks, const Agreement& agreement,
                              const std::function<std::string(MemberId)>& name);

struct MemberClaim {
  MemberId member;
  Claim claim;
};
struct WrongClaims {
  std::string text;                // what the members compute
  std::vector<MemberId> outvoted;  // ascending; empty: no claim has more than half of the members
};
// Returns nullopt if all members claim the same.
std::optional<WrongClaims> wrong_claims(const std::vector<MemberClaim>& claims,
                                        const std::function<std::string(MemberId)>& name);

}  // namespace sinew::group
