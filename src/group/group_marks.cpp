// Compares the members' states.
//
// Each computing member sends the mark of its state with its small bytes, and the result of the collective contains all
// marks. All members of the group therefore judge the same marks at the same collective, and reach the same verdict. A
// joining member, or a member that was not in the view of the result, compares its own mark with the group's.
//
// The callers of all functions in this file hold the mutex.
#include <algorithm>

#include "group/agreement.h"
#include "group/group_state.h"

namespace sinew::group {
namespace {

constexpr const char* kSuspect = "test the memory and the processor of their machines";

}  // namespace

MembersDiffer::MembersDiffer(const std::string& what, std::vector<MemberId> outvoted_given)
    : Error("GROUP_MEMBERS_DIVERGED", what,
            outvoted_given.empty() ? std::string("every checkpoint was compared before it was saved: ") + kSuspect +
                                         ", then continue with `sinew resume`; three or more workers find out by "
                                         "themselves which of them is wrong"
                                   : "test the memory and the processor of that machine"),
      outvoted(std::move(outvoted_given)) {}

std::string Group::State::name_in_view(MemberId id) const {
  const cluster::ViewMember* view_member = view ? view->find(id) : nullptr;
  return member_name(id) + (view_member == nullptr ? "" : " (" + view_member->address + ")");
}

void Group::State::end_differing(const std::string& what, std::vector<MemberId> outvoted) {
  if (!ended()) failure = std::make_exception_ptr(MembersDiffer(what, std::move(outvoted)));
  changed.notify_all();
}

// The leader has the small bytes of all computing members. If they do not compute the same thing, it ends the group.
bool Group::State::claims_agree() {
  if (open->plan->claims_agree) return true;
  std::vector<MemberClaim> claims;
  for (const auto& [from, bytes] : inboxes[open->collective].small) {
    const auto claim = decode_claim(*bytes);
    if (!claim) {
      fence(member_name(from) + " sent " + claim.error());
      return false;
    }
    claims.push_back({from, *claim});
  }
  if (const auto wrong = wrong_claims(claims, [this](MemberId id) { return name_in_view(id); })) {
    end_differing(
        "the members compute different things in collective " + std::to_string(open->collective) + ": " + wrong->text,
        wrong->outvoted);
    return false;
  }
  open->plan->claims_agree = true;
  return true;
}

void Group::State::judge_marks(const Reduced& reduced) {
  const Agreement agreement = agreement_of(reduced.marks);
  const auto name = [this](MemberId id) { return name_in_view(id); };
  const bool differ = agreement.split || !agreement.outvoted.empty();
  const bool among_them = std::ranges::find(reduced.marks, me, &MemberMark::member) != reduced.marks.end();
  if (differ && among_them) {
    const std::string text = disagreement_text(reduced.marks, agreement, name);
    return end_differing(agreement.split
                             ? "the members have different states, and it is not known which of them is right: " + text
                             : "a member's state differs from that of the others: " + text,
                         agreement.outvoted);
  }
  if (differ) return fence("the members of the group have different states");
  if (agreement.mark && open->mark && *open->mark != *agreement.mark) {
    std::vector<MemberMark> two = {{me, *open->mark}, {reduced.marks.front().member, *agreement.mark}};
    return fence(member_name(me) + " does not have the group's state: " + disagreement_text(two, {}, name));
  }
  open->judged = true;
}

}  // namespace sinew::group
