// Implements View, and converts views to JSON and back.
#include <algorithm>

#include "cluster/cluster.h"
#include "cluster/json.h"
#include "cluster/view_json.h"

namespace sinew::cluster {

const ViewMember* View::find(MemberId id) const {
  const auto at =
      std::lower_bound(members.begin(), members.end(), id,
                       [](const ViewMember& view_member, MemberId wanted) { return view_member.id < wanted; });
  return at != members.end() && at->id == id ? &*at : nullptr;
}

std::vector<MemberId> View::computing() const {
  std::vector<MemberId> ids;
  for (const ViewMember& view_member : members) {
    if (!view_member.joining) ids.push_back(view_member.id);
  }
  return ids;
}

std::optional<MemberId> View::leader() const {
  if (named_leader.value > 0) return named_leader;
  const auto ids = computing();
  if (ids.empty()) return std::nullopt;
  return ids.front();
}

Json json_of(const View& view) {
  Json members = Json::array();
  for (const ViewMember& view_member : view.members) {
    Json one = {{"id", view_member.id.value},
                {"address", view_member.address},
                {"share", view_member.share},
                {"joining", view_member.joining}};
    if (view_member.joining) one["donor"] = view_member.donor.value;
    members.push_back(std::move(one));
  }
  Json json = {
      {"generation", view.generation.value}, {"fresh", view.fresh}, {"why", view.why}, {"members", std::move(members)}};
  if (const GoingBack& back = view.going_back; back.count > 0)
    json["going_back"] = {{"count", back.count}, {"durable_step", back.durable}, {"why", back.why}};
  if (view.dissolved) json["dissolved"] = true;
  if (view.named_leader.value > 0) json["leader"] = view.named_leader.value;
  return json;
}

namespace {

std::optional<ViewMember> view_member_of(const Json& json) {
  const auto id = whole_of(json, "id", 1);
  const auto address = text_of(json, "address", kLongestAddress);
  const auto share = number_of(json, "share", 0, kMostShare);
  const auto joining = truth_of(json, "joining");
  const auto donor = whole_of(json, "donor", 1);
  if (!id || !address || !share || !joining || *joining != donor.has_value()) return std::nullopt;
  return ViewMember{.id = MemberId(*id),
                    .address = *address,
                    .share = *share,
                    .joining = *joining,
                    .donor = MemberId(donor.value_or(0))};
}

// A view without the field is of a run that never went back.
std::optional<GoingBack> going_back_of(const Json& view) {
  const Json* json = member_of(view, "going_back");
  if (json == nullptr) return GoingBack();
  const auto count = whole_of(*json, "count", 1);
  const auto durable = whole_of(*json, "durable_step", -1);
  const auto why = text_of(*json, "why", kLongestWhy);
  if (!count || !durable || !why) return std::nullopt;
  return GoingBack{*count, *durable, *why};
}

}  // namespace

std::optional<View> view_of(const Json& json) {
  const auto generation = whole_of(json, "generation", 1);
  const auto fresh = truth_of(json, "fresh");
  const auto why = text_of(json, "why", kLongestWhy);
  const auto going_back = going_back_of(json);
  const Json* members = member_of(json, "members");
  if (!generation || !fresh || !why || !going_back || members == nullptr || !members->is_array() ||
      members->size() > kMostMembers) {
    return std::nullopt;
  }
  View view{
      .generation = Generation(*generation), .members = {}, .fresh = *fresh, .why = *why, .going_back = *going_back};
  for (const Json& one : *members) {
    const auto view_member = view_member_of(one);
    if (!view_member || (!view.members.empty() && !(view.members.back().id < view_member->id))) return std::nullopt;
    view.members.push_back(*view_member);
  }
  for (const ViewMember& view_member : view.members) {  // a donor must have the state
    const ViewMember* donor = view_member.joining ? view.find(view_member.donor) : nullptr;
    if (view_member.joining && (donor == nullptr || donor->joining)) return std::nullopt;
  }
  if (member_of(json, "dissolved") != nullptr) {
    const auto dissolved = truth_of(json, "dissolved");
    if (!dissolved) return std::nullopt;
    view.dissolved = *dissolved;
  }
  if (const Json* leader = member_of(json, "leader"); leader != nullptr) {
    view.named_leader = MemberId(whole_of(json, "leader", 1).value_or(0));
    const ViewMember* named = view.find(view.named_leader);
    if (named == nullptr || named->joining) return std::nullopt;
  }
  if (!view.leader()) return std::nullopt;
  return view;
}

std::string to_json(const View& view) {
  return dump(json_of(view));
}

std::optional<View> view_of_json(const std::string& json) {
  const auto parsed = parse_json(json);
  if (!parsed) return std::nullopt;
  return view_of(*parsed);
}

}  // namespace sinew::cluster
