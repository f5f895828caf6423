// Implements the coordinator's decisions, and answers the calls of users and of the supervisor.
#include "cluster/coordinator_state.h"

#include <algorithm>

#include "cluster/membership.h"
#include "cluster/protocol.h"
#include "cluster/view_json.h"

namespace sinew::cluster {

Reply refuse(int status, ErrorCode code, const std::string& error, const std::string& hint) {
  return {status, dump({{"error", error}, {"hint", hint}, {"code", code.text()}})};
}

namespace {

Reply bad_body(const std::string& problem) {
  return refuse(400, kBadRequest, problem, "docs/formats/coordinator.md describes the calls");
}

Reply done(const Json& json) {
  return {200, dump(json)};
}

}  // namespace

CoordinatorState::CoordinatorState(const CoordinatorOptions& options, Moment at)
    : options_(options), revoked_(options.revoked) {
  state_.began = state_.awake = last_call_ = confirmed_ = at.now;
  state_.at_least = options.at_least;
  next_id_ = options.first_id.value + 1;
  const bool successor = options.at_least.value > 0 || options.first_id.value > 0;
  if (successor) state_.listens_until = at.now + options.cluster.settle_seconds;
  if (!options.last_view) return;
  learn_view(*options.last_view, at);
  if (options.last_view->dissolved) dissolved_ = "the group was ended: " + options.last_view->going_back.why;
}

void CoordinatorState::tick(Moment at) {
  notice_pause(at);
  decide(at);
}

void CoordinatorState::supersede(int64_t term, const std::string& by, Moment at) {
  if (superseded_by_) return;
  superseded_by_ = term;
  log(at, "steps down, because another coordinator leads the run: " + by + " names term " + std::to_string(term) +
              ", and this coordinator has term " + std::to_string(options_.term));
}

std::optional<Reply> CoordinatorState::refuse_without_lead(double now) const {
  if (superseded_by_) {
    return refuse(503, kSuperseded, "another coordinator leads the run now",
                  "coordinator.json in the run directory says where it listens");
  }
  if (options_.confirm_seconds <= 0 || now - confirmed_ <= options_.confirm_seconds) return std::nullopt;
  return refuse(503, kNotReady,
                "the coordinator does not know whether it still leads the run: it did not run, or its "
                "run directory does not answer",
                "try again in two seconds");
}

// Ticks come every 50 ms, so a longer time between two calls means that this process did not run. Heartbeats that
// arrived in the meantime are still in its sockets. Therefore this time does not count as silence.
void CoordinatorState::notice_pause(Moment at) {
  if (at.now - last_call_ > options_.cluster.silence_seconds / 2) {
    state_.awake = at.now;
    log(at, "the coordinator itself did not run for " + seconds_text(at.now - last_call_) +
                "; members' silence in that time does not count");
  }
  last_call_ = at.now;
  if (due_ && at.now >= *due_) due_.reset();
}

void CoordinatorState::log(Moment at, const std::string& text) {
  constexpr size_t kMostLines = 50;
  log_.push_back({at.wall, text});
  if (log_.size() > kMostLines) log_.pop_front();
  if (options_.log) options_.log(text);
}

void CoordinatorState::fence(const std::string& incarnation, const std::string& why) {
  constexpr size_t kMostRemembered = 4096;
  if (!fenced_.emplace(incarnation, why).second) return;
  fenced_order_.push_back(incarnation);
  if (fenced_order_.size() <= kMostRemembered) return;
  fenced_.erase(fenced_order_.front());
  fenced_order_.pop_front();
}

// Marks the members of a dissolved view as lost. A successor learns of these members one by one, so this is repeated
// until it decides on the next view.
void CoordinatorState::lose_the_dissolved() {
  if (dissolved_.empty() || !state_.view) return;
  for (const ViewMember& entry : state_.view->members) {
    const auto member = state_.members.find(entry.id);
    if (member != state_.members.end() && member->second.lost.empty()) member->second.lost = dissolved_;
  }
}

// Marks the members whose token has expired or was revoked as lost.
void CoordinatorState::lose_the_unauthorized(Moment at) {
  for (const auto& [id, incarnation] : incarnations_) {
    const auto member = state_.members.find(id);
    const auto trouble = trouble_of(incarnation.caller, at);
    if (trouble && member != state_.members.end() && member->second.lost.empty()) member->second.lost = trouble->what;
  }
}

void CoordinatorState::decide(Moment at) {
  if (!leads(at.now)) return;
  lose_the_dissolved();
  lose_the_unauthorized(at);
  const Decision decision = next_view(at.now, state_, options_.cluster);
  why_ = decision.why;
  bool lost = false;
  for (const auto& [id, why] : decision.fenced) {
    const ViewMember* entry = state_.view ? state_.view->find(id) : nullptr;
    const auto member = state_.members.find(id);
    const bool leaves = member != state_.members.end() && member->second.phase == Member::Phase::leaving;
    lost = lost || (entry != nullptr && !entry->joining && !leaves);
    // The reason of a new view names the members that the view lost.
    if (entry == nullptr || !decision.view) log(at, "member " + std::to_string(id.value) + " is fenced: " + why);
    const auto incarnation = incarnations_.find(id);
    if (incarnation == incarnations_.end()) continue;
    fence(incarnation->second.name, why);
    incarnations_.erase(incarnation);
  }
  if (decision.view) {
    if (decision.view->fresh) offer_unsaved_requests(at);
    made_ = decision.view->generation;
    log(at, "view " + std::to_string(made_.value) + ": " + decision.why);
    if (lost && !decision.view->fresh) recovery_ = Recovery{at.now, made_, decision.why, std::nullopt};
  }
  const auto before = state_.view;
  cluster::apply(decision, at.now, state_);
  if (!state_.view || (decision.view && decision.view->fresh)) dissolved_.clear();
  if (decision.view && options_.on_view) options_.on_view(*decision.view);
  if (before && !state_.view) {
    abandoned_ = before->generation;
    log(at, "no member that has the state is left; the next members begin from the newest checkpoint");
  }
}

void CoordinatorState::update_recovery(Moment at) {
  if (!recovery_ || recovery_->seconds || !state_.view) return;
  for (const MemberId id : state_.view->computing()) {
    const auto member = state_.members.find(id);
    if (member != state_.members.end() && member->second.view < recovery_->generation) return;
  }
  recovery_->seconds = at.now - recovery_->began;
}

Reply CoordinatorState::lost(const std::string& body, Moment at) {
  notice_pause(at);
  const auto json = parse_json(body);
  if (!json) return bad_body("the body is not JSON");
  Fields fields(*json);
  const auto id = fields.has("id") ? fields.whole("id", 1) : 0;
  const auto pid = fields.has("pid") ? fields.whole("pid", 1) : 0;
  const std::string host = fields.text("host", kLongestAddress, "");
  const std::string why = one_line(fields.text("why", kLongestText));
  if (id == 0 && pid == 0) fields.blame("\"id\" or \"pid\" must name the lost member");
  if (!fields.problem().empty()) return bad_body(fields.problem());
  Json found = Json::array();
  for (auto& [key, member] : state_.members) {
    const bool meant = id != 0 ? key.value == id : member.pid == pid && (host.empty() || member.host == host);
    if (!meant) continue;
    if (member.lost.empty()) member.lost = why.empty() ? "reported without a reason" : why;
    found.push_back(key.value);
  }
  if (found.empty()) {
    const std::string named = id != 0 ? "id " + std::to_string(id) : "process " + std::to_string(pid);
    return refuse(404, kUnknownMember, "no member has " + named,
                  "the coordinator may have fenced it already; `sinew ps` lists the members");
  }
  decide(at);
  return done({{"lost", found}});
}

Reply CoordinatorState::scale(const std::string& body, Moment at) {
  notice_pause(at);
  const auto json = parse_json(body);
  if (!json) return bad_body("the body is not JSON");
  Fields fields(*json);
  const int64_t workers = fields.whole("workers", 1, std::nullopt, kMostWorkers);
  if (!fields.problem().empty()) return bad_body(fields.problem());
  if (workers > options_.most_workers) {
    return refuse(400, kBadRequest,
                  "this run has at most " + std::to_string(options_.most_workers) +
                      " workers, because they are confined, and their memory was divided when it began",
                  "stop the run, and resume it with --workers " + std::to_string(workers));
  }
  const int64_t was = std::exchange(options_.cluster.wanted, workers);
  if (was != workers) log(at, "workers wanted: " + std::to_string(workers) + " instead of " + std::to_string(was));
  decide(at);
  return done({{"workers", workers}, {"was", was}});
}

Reply CoordinatorState::control(const std::string& body, Moment at) {
  notice_pause(at);
  const auto json = parse_json(body);
  if (!json) return bad_body("the body is not JSON");
  Fields fields(*json);
  ControlRequest request;
  request.kind = fields.text("kind", 64);
  request.value = fields.number("value", -1e18, 1e18, 0.0);
  request.reason = one_line(fields.text("reason", kLongestText, ""));
  if (fields.problem().empty()) fields.blame(problem_of(request));
  if (!fields.problem().empty()) return bad_body(fields.problem());
  if (state_.finished) return refuse(409, kRunOver, "the run is over", "");
  if (listening(at.now)) {
    return refuse(503, kNotReady, "a new coordinator has taken over and still listens to the members",
                  "try again in two seconds");
  }
  if (requests_.size() >= kMostRequests) {
    return refuse(429, kTooMany, std::to_string(requests_.size()) + " requests wait already",
                  "check with `sinew ps` that a member computes and takes them");
  }
  request.number = ++last_request_;
  requests_.push_back(request);
  log(at, "request " + std::to_string(request.number) + ": " + request.kind +
              (request.reason.empty() ? "" : " (" + request.reason + ")"));
  return done({{"number", request.number}});
}

std::optional<TokenTrouble> CoordinatorState::trouble_of(const Caller& caller, Moment at) const {
  return caller.token ? trouble_with(*caller.token, at.wall, revoked_) : std::nullopt;
}

std::optional<Reply> CoordinatorState::refuse_caller(const Caller& caller, Moment at) const {
  const auto trouble = trouble_of(caller, at);
  if (!trouble) return std::nullopt;
  return refuse(401, trouble->code, trouble->what,
                "make another one on the machine of the run's coordinator: sinew token create RUN");
}

std::optional<Reply> CoordinatorState::refuse_unread(const std::string& path, const Caller& caller, Moment at) const {
  const bool of_member = path == "/v2/heartbeat" || path == "/v2/updates";
  const auto trouble = trouble_of(caller, at);
  return trouble && of_member ? std::optional(fenced_reply(trouble->what)) : refuse_caller(caller, at);
}

Reply CoordinatorState::revoke(const std::string& body, Moment at) {
  notice_pause(at);
  const auto json = parse_json(body);
  if (!json) return bad_body("the body is not JSON");
  Fields fields(*json);
  const std::string id = fields.text("token", kLongestText);
  if (fields.problem().empty() && !is_token_id(id))
    fields.blame("\"token\" must be the id of a join token, 16 hex digits");
  if (!fields.problem().empty()) return bad_body(fields.problem());
  if (revoked_.insert(id).second) log(at, "the join token " + id + " is revoked");
  Json members = Json::array();
  for (const auto& [member, incarnation] : incarnations_) {
    if (incarnation.caller.token_id() == id) members.push_back(member.value);
  }
  decide(at);
  return done({{"token", id}, {"members", members}});
}

std::optional<int64_t> CoordinatorState::over(double now) const {
  if (!state_.finished) return std::nullopt;
  if (!state_.view) return state_.finished;
  const auto gone = gone_members(now, state_, options_.cluster);
  for (const ViewMember& entry : state_.view->members) {
    const auto incarnation = incarnations_.find(entry.id);
    const auto member = state_.members.find(entry.id);
    if (incarnation == incarnations_.end() || member == state_.members.end() || incarnation->second.knows_end) continue;
    // The run's end does not wait for a silent member, even if it is the last one that has the state: the run no longer
    // needs the state.
    const double silence = now - std::max(member->second.heard, state_.awake);
    if (!gone.contains(entry.id) && silence <= options_.cluster.silence_seconds) return std::nullopt;
  }
  return state_.finished;
}

}  // namespace sinew::cluster
