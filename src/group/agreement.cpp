#include "group/agreement.h"

#include <algorithm>

namespace sinew::group {
namespace {

constexpr size_t kNamed = 4;  // the most groups of members that a text lists

std::string part_text(const Mark& mark) {
  return mark.part == Mark::kWhole ? "the whole state" : "part " + std::to_string(mark.part) + " of the state";
}

// "a, b and c"
std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

Agreement agreement_of(const std::vector<MemberMark>& marks) {
  Agreement agreement;
  if (marks.empty()) return agreement;
  agreement.mark = marks.front().mark;
  if (std::ranges::all_of(marks, [&](const MemberMark& one) { return one.mark == *agreement.mark; })) return agreement;
  agreement.mark.reset();
  for (const MemberMark& one : marks) {
    const auto same = std::ranges::count(marks, one.mark, &MemberMark::mark);
    if (2 * same > static_cast<int64_t>(marks.size())) agreement.mark = one.mark;
  }
  agreement.split = !agreement.mark;
  if (agreement.split) return agreement;
  for (const MemberMark& one : marks) {
    if (one.mark != *agreement.mark) agreement.outvoted.push_back(one.member);
  }
  return agreement;
}

std::string disagreement_text(const std::vector<MemberMark>& marks, const Agreement& agreement,
                              const std::function<std::string(MemberId)>& name) {
  std::vector<std::pair<Mark, std::vector<std::string>>> sides;
  for (const MemberMark& one : marks) {
    auto side = std::ranges::find(sides, one.mark, [](const auto& known) { return known.first; });
    if (side == sides.end()) side = sides.insert(sides.end(), {one.mark, {}});
    side->second.push_back(name(one.member));
  }
  if (agreement.mark) {  // the outvoted members come first
    std::ranges::stable_partition(sides, [&](const auto& side) { return side.first != *agreement.mark; });
  }
  std::string text;
  for (size_t i = 0; i < sides.size() && i < kNamed; ++i) {
    const auto& [mark, names] = sides[i];
    text += (i == 0 ? "before step " + std::to_string(mark.step) + " " + part_text(mark) + " has digest " : " and ") +
            to_hex(mark.digest) + " on " + list_text(names);
  }
  if (sides.size() > kNamed) text += " and others elsewhere";
  return text;
}

std::optional<WrongClaims> wrong_claims(const std::vector<MemberClaim>& claims,
                                        const std::function<std::string(MemberId)>& name) {
  std::vector<std::pair<Claim, std::vector<MemberId>>> sides;
  for (const MemberClaim& one : claims) {
    auto side = std::ranges::find(sides, one.claim, [](const auto& known) { return known.first; });
    if (side == sides.end()) side = sides.insert(sides.end(), {one.claim, {}});
    side->second.push_back(one.member);
  }
  if (sides.size() < 2) return std::nullopt;
  WrongClaims wrong;
  const auto right =
      std::ranges::find_if(sides, [&](const auto& side) { return 2 * side.second.size() > claims.size(); });
  for (auto side = sides.begin(); side != sides.end(); ++side) {
    if (right != sides.end() && side != right)
      wrong.outvoted.insert(wrong.outvoted.end(), side->second.begin(), side->second.end());
    std::vector<std::string> names;
    for (const MemberId id : side->second) names.push_back(name(id));
    const bool same_purpose =
        std::ranges::count(sides, side->first.purpose, [](const auto& it) { return it.first.purpose; }) > 1;
    wrong.text += (wrong.text.empty() ? "" : ", and ") + to_string(side->first.purpose) +
                  (same_purpose ? " with other rows or shards" : "") + " on " + list_text(names);
  }
  std::ranges::sort(wrong.outvoted);
  return wrong;
}

}  // namespace sinew::group
