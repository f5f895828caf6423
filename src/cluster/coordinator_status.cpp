// GET /v2/status: all that `sinew ps` shows.
#include <algorithm>

#include "cluster/coordinator_state.h"
#include "cluster/view_json.h"

namespace sinew::cluster {

Json CoordinatorState::member_json(const Member& member, double now) const {
  const ViewMember* view_member = state_.view ? state_.view->find(member.id) : nullptr;
  double total = 0;
  for (const ViewMember& one : state_.view ? state_.view->members : std::vector<ViewMember>{})
    total += one.joining ? 0 : one.share;
  Json json = {{"id", member.id.value},
               {"host", member.host},
               {"pid", member.pid},
               {"address", member.address},
               {"phase", name_of(member.phase)},
               {"in_view", view_member != nullptr},
               {"view", member.view.value},
               {"step", member.step},
               {"durable_step", member.durable_step},
               {"speed", member.speed},
               {"here_seconds", std::max(0.0, now - member.since)},
               {"silent_seconds", std::max(0.0, now - member.heard)}};
  json["part"] =
      view_member != nullptr && !view_member->joining && total > 0 ? view_member->share / total : 0.0;  // of the work
  if (view_member != nullptr && view_member->joining) json["donor"] = view_member->donor.value;
  return json;
}

Reply CoordinatorState::status(Moment at) const {
  Json members = Json::array();
  for (const auto& [id, member] : state_.members) members.push_back(member_json(member, at.now));
  Json requests = Json::array();
  for (const ControlRequest& request : requests_) requests.push_back(json_of(request));
  Json lines = Json::array();
  for (const Line& line : lines_) lines.push_back({{"at", utc_iso(line.wall)}, {"text", line.text}});
  Json json = {{"job", options_.job},
               {"run_directory", options_.run_directory},
               {"wanted", options_.cluster.wanted},
               {"minimum", options_.cluster.minimum},
               {"listening", listening(at.now)},
               {"running_seconds", at.now - state_.began},
               {"why", why_},
               {"members", std::move(members)},
               {"requests", std::move(requests)},
               {"decisions", std::move(lines)}};
  if (state_.view) {
    json["view"] = json_of(*state_.view);
    const auto leader = state_.view->leader();
    json["leader"] = leader->value;
    const auto member = state_.members.find(*leader);
    const auto facts = member == state_.members.end() ? std::nullopt : parse_json(member->second.facts);
    if (facts && facts->is_object()) json["facts"] = *facts;
  }
  if (state_.finished) json["finished"] = *state_.finished;
  if (recovery_) {
    json["last_recovery"] = {{"generation", recovery_->generation.value},
                             {"why", recovery_->why},
                             {"seconds_ago", at.now - recovery_->began}};
    if (recovery_->seconds) json["last_recovery"]["seconds"] = *recovery_->seconds;
  }
  return {200, dump(json)};
}

}  // namespace sinew::cluster
