// Answers GET /v2/status: what the coordinator knows, for users and for the supervisor.
#include <algorithm>

#include "cluster/coordinator_state.h"

namespace sinew::cluster {

MemberStatus CoordinatorState::status_of(const Member& member, double now) const {
  MemberStatus status;
  status.id = member.id.value;
  status.pid = member.pid;
  status.host = member.host;
  status.address = member.address;
  status.phase = name_of(member.phase);
  status.view = member.view.value;
  status.step = member.step;
  status.durable_step = member.durable_step;
  status.speed = member.speed;
  status.here_seconds = std::max(0.0, now - member.since);
  status.silent_seconds = std::max(0.0, now - member.heard);
  const auto incarnation = incarnations_.find(member.id);
  if (incarnation != incarnations_.end()) status.token = incarnation->second.caller.token_id();
  const ViewMember* entry = state_.view ? state_.view->find(member.id) : nullptr;
  if (entry == nullptr) return status;
  status.in_view = true;
  if (entry->joining) {
    status.donor = entry->donor.value;
    return status;
  }
  double total = 0;
  for (const ViewMember& one : state_.view->members) total += one.joining ? 0 : one.share;
  if (total > 0) status.work_share = entry->share / total;
  return status;
}

Reply CoordinatorState::status(Moment at, const std::optional<Caller>& caller) const {
  const std::string token = caller ? caller->token_id() : "";
  CoordinatorStatus status;
  status.job = options_.job;
  status.run_directory = options_.run_directory;
  status.wanted = options_.cluster.wanted;
  status.minimum = options_.cluster.minimum;
  status.listening = listening(at.now);
  status.running_seconds = at.now - state_.began;
  status.why = why_;
  for (const auto& [id, member] : state_.members) status.members.push_back(status_of(member, at.now));
  for (MemberStatus& member : status.members) {
    if (token.empty() || member.token == token) continue;
    member.host.clear();
    member.pid = 0;
  }
  status.requests = requests_;
  if (token.empty()) {
    for (const LogLine& line : log_) status.decisions.push_back({utc_iso(line.wall), line.text});
  }
  status.view = state_.view;
  if (state_.view) {
    const MemberId leader = *state_.view->leader();
    status.leader = leader.value;
    const auto member = state_.members.find(leader);
    if (member != state_.members.end()) status.facts = member->second.facts;
  }
  status.finished = state_.finished;
  if (recovery_)
    status.last_recovery = {recovery_->generation.value, recovery_->why, at.now - recovery_->began, recovery_->seconds};
  return {200, to_json(status)};
}

}  // namespace sinew::cluster
