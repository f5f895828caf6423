// Answers the calls of members: join, heartbeat and updates. If the coordinator does not know a member, it asks the
// member to introduce itself. From these introductions a successor (the next coordinator after one has died) learns
// what its predecessor knew.
#include <algorithm>

#include "cluster/coordinator_state.h"
#include "cluster/membership.h"
#include "cluster/protocol.h"
#include "cluster/view_json.h"

namespace sinew::cluster {
namespace {

// A dead coordinator may have given out member ids and view generations that no living member knows. Its successor goes
// this far beyond those that it learns.
constexpr int64_t kSkippedNumbers = 1000;
constexpr const char* kSeeFormat = "docs/formats/coordinator.md describes the calls";

Member introduced_member(MemberId id, const Introduction& introduction, bool guest, double now) {
  Member member;
  member.id = id;
  member.address = introduction.address;
  member.host = introduction.host;
  member.pid = introduction.pid;
  member.identity = introduction.identity;
  member.guest = guest;
  member.heard = member.since = now;
  return member;
}

Reply reply_of(const HeartbeatReply& reply) {
  return {200, to_json(reply)};
}

// Refuses a caller that speaks for a member which joined with another token. Returns nullopt if it is the member
// itself.
std::optional<Reply> refuse_other(const Caller& member, const Caller& caller) {
  if (member.token_id() == caller.token_id()) return std::nullopt;
  return refuse(403, kNotAllowed, "this member joined with another token", "");
}

// Returns the number, or -1 if it is absent or not a number.
int64_t number_in(const std::map<std::string, std::string>& query, const char* key) {
  const auto found = query.find(key);
  if (found == query.end() || found->second.empty() || found->second.size() > 15) return -1;
  int64_t number = 0;
  for (const char c : found->second) {
    if (c < '0' || c > '9') return -1;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::string text_in(const std::map<std::string, std::string>& query, const char* key) {
  const auto found = query.find(key);
  return found == query.end() ? "" : found->second;
}

}  // namespace

std::expected<UpdatesPoll, Reply> poll_of(const std::map<std::string, std::string>& query) {
  const int64_t id = number_in(query, "id"), known_view = number_in(query, "known_view");
  if (id < 1 || known_view < 0) {
    return std::unexpected(refuse(400, kBadRequest, "\"id\" and \"known_view\" must be whole numbers",
                                  "/v2/updates?id=1&incarnation=...&known_view=0"));
  }
  return UpdatesPoll{MemberId(id),
                     text_in(query, "incarnation"),
                     Generation(known_view),
                     text_in(query, "requests_key"),
                     number_in(query, "knows_end") == 1,
                     std::max<int64_t>(0, number_in(query, "term"))};
}

Reply CoordinatorState::fenced_reply(const std::string& why) const {
  HeartbeatReply reply;
  reply.term = options_.term;
  reply.fenced = why;
  return reply_of(reply);
}

Reply CoordinatorState::introduce_reply() const {
  HeartbeatReply reply;
  reply.term = options_.term;
  reply.introduce = true;
  return reply_of(reply);
}

// Called if a member has heard of a newer coordinator. The holder of a join token is not believed, because it must not
// be able to end a coordinator.
void CoordinatorState::hear_term(int64_t term, MemberId from, const Caller& caller, Moment at) {
  if (term > options_.term && !caller.token) supersede(term, "member " + std::to_string(from.value), at);
}

void CoordinatorState::hear(const UpdatesPoll& poll, Moment at) {
  hear_term(poll.term, poll.id, poll.caller, at);
}

Reply CoordinatorState::join(const std::string& body, Moment at, const Caller& caller) {
  notice_pause(at);
  if (auto refused = refuse_caller(caller, at)) return *std::move(refused);
  const auto request = join_request_of(body);
  if (!request) return refuse(400, kBadRequest, request.error(), kSeeFormat);
  if (state_.finished) return refuse(409, kRunOver, "the run is over", "");
  // The worker repeats its join because it did not receive the first answer.
  for (const auto& [id, incarnation] : incarnations_) {
    if (incarnation.name != request->incarnation) continue;
    if (auto refused = refuse_other(incarnation.caller, caller)) return *std::move(refused);
    if (incarnation.key != request->key)
      return refuse(403, kNotAllowed, "this incarnation has joined already, with another key", kSeeFormat);
    return admitted(id, *request, caller);
  }
  if (const auto fenced = fenced_.find(request->incarnation); fenced != fenced_.end()) {
    return refuse(409, kMemberFenced, "the coordinator has fenced this incarnation: " + fenced->second,
                  "join again as another incarnation");
  }
  if (state_.members.size() >= kMostMembers) {
    return refuse(429, kTooMany,
                  "the run has " + std::to_string(kMostMembers) + " members already, the most it can have", "");
  }
  Member member = introduced_member(MemberId(next_id_), request->introduction, caller.token.has_value(), at.now);
  if (const std::string why = refusal(member, state_); !why.empty()) {
    log(at, "a worker on " + member.host + " is refused: " + why);
    return refuse(403, kIdentityDiffers, "the coordinator refuses this worker: " + why,
                  "start it with the same job, data and programs, on the same kind of machine");
  }
  ++next_id_;
  incarnations_[member.id] = {request->incarnation, false, caller, request->key};
  state_.members[member.id] = member;
  lose_other_guests(member, state_);
  if (caller.token) log(at, "member " + std::to_string(member.id.value) + " has the join token " + caller.token->id);
  decide(at);
  return admitted(member.id, *request, caller);
}

// The certificate holds for all coordinators of the run, because they have the same key.
Reply CoordinatorState::admitted(MemberId id, const JoinRequest& request, const Caller& caller) const {
  JoinReply reply{id, options_.term, std::nullopt};
  if (caller.token) reply.proof = membership_proof(options_.secret, caller.token_id(), id, request.incarnation);
  if (request.key) reply.certificate = certify(KeyPair::of_secret(options_.secret), id, *request.key);
  return {200, to_json(reply)};
}

Reply CoordinatorState::heartbeat(const std::string& body, Moment at, const Caller& caller) {
  notice_pause(at);
  if (const auto trouble = trouble_of(caller, at)) return fenced_reply(trouble->what);
  const auto heartbeat = heartbeat_of(body);
  if (!heartbeat) return refuse(400, kBadRequest, heartbeat.error(), kSeeFormat);
  hear_term(heartbeat->term, heartbeat->id, caller, at);
  if (auto refused = refuse_without_lead(at.now)) return *std::move(refused);
  if (const auto answer = admit(*heartbeat, at, caller)) return *answer;
  apply(*heartbeat, at, caller);
  decide(at);
  update_recovery(at);
  if (const auto fenced = fenced_.find(heartbeat->incarnation); fenced != fenced_.end())
    return fenced_reply(fenced->second);
  return reply_of(
      reply_for(heartbeat->id, heartbeat->known_view, heartbeat->requests_key, heartbeat->knows_end, at.now));
}

std::optional<Reply> CoordinatorState::admit(const Heartbeat& heartbeat, Moment at, const Caller& caller) {
  if (const auto fenced = fenced_.find(heartbeat.incarnation); fenced != fenced_.end())
    return fenced_reply(fenced->second);
  const auto incarnation = incarnations_.find(heartbeat.id);
  const bool known = incarnation != incarnations_.end() && incarnation->second.name == heartbeat.incarnation;
  if (known) {
    if (auto refused = refuse_other(incarnation->second.caller, caller)) return refused;
  }
  if (!heartbeat.introduction) {
    if (known && heartbeat.acting_view <= newest_view()) return std::nullopt;
    return introduce_reply();
  }
  const auto& view = heartbeat.report.view;
  if (heartbeat.acting_view.value > 0 && (!view || view->generation < heartbeat.acting_view)) {
    return refuse(400, kBadRequest,
                  "the member acts by view " + std::to_string(heartbeat.acting_view.value) +
                      ", and its introduction lacks that view",
                  kSeeFormat);
  }
  if (!known) {
    if (auto answer = introduce(heartbeat, at, caller)) return answer;
  }
  // not trusted: members with the run's secret, or view.json, bring the view and the requests
  if (caller.token) return std::nullopt;
  if (view) learn_view(*view, at);
  learn_requests(heartbeat.requests);
  return std::nullopt;
}

// The holder of a token must not take the id of another member. A member with the run's secret is believed.
bool CoordinatorState::proves_its_id(const Heartbeat& heartbeat, const Caller& caller) const {
  if (!caller.token) return true;
  const std::string proof = membership_proof(options_.secret, caller.token_id(), heartbeat.id, heartbeat.incarnation);
  return same_secret(heartbeat.introduction->proof, proof);
}

std::optional<Reply> CoordinatorState::introduce(const Heartbeat& heartbeat, Moment at, const Caller& caller) {
  // This incarnation is not noted as fenced: else lies would make the coordinator forget those that it must remember.
  if (!proves_its_id(heartbeat, caller))
    return fenced_reply("no coordinator of this run has given this worker the id " +
                        std::to_string(heartbeat.id.value));
  const auto other = incarnations_.find(heartbeat.id);
  // Two members have the same id. The one that has the run's secret keeps it, or else the member that is in the view.
  if (other != incarnations_.end()) {
    const bool known_is_in_view = state_.view && state_.view->find(heartbeat.id) != nullptr;
    const bool secret_comes = other->second.caller.token && !caller.token;
    const bool newcomer_loses = caller.token || (!secret_comes && (known_is_in_view || !heartbeat.report.view));
    const std::string& loser = newcomer_loses ? heartbeat.incarnation : other->second.name;
    const std::string why = "another member has id " + std::to_string(heartbeat.id.value);
    const bool newcomer_goes = loser == heartbeat.incarnation;
    fence(loser, why);
    if (newcomer_goes) return fenced_reply(why);
    state_.members.erase(heartbeat.id);
  }
  Member member = introduced_member(heartbeat.id, *heartbeat.introduction, caller.token.has_value(), at.now);
  if (const std::string why = refusal(member, state_); !why.empty()) {
    fence(heartbeat.incarnation, why);
    return fenced_reply(why);
  }
  next_id_ = std::max(next_id_, heartbeat.id.value + kSkippedNumbers);
  state_.members[heartbeat.id] = member;
  lose_other_guests(member, state_);
  incarnations_[heartbeat.id] = {heartbeat.incarnation, false, caller, std::nullopt};
  return std::nullopt;
}

Generation CoordinatorState::newest_view() const {
  return std::max(state_.view ? state_.view->generation : Generation(), abandoned_);
}

// Takes over a predecessor's view if it is newer than the known one. The predecessor may have made still newer views
// that this coordinator never sees, so this coordinator's first view gets a much higher generation.
void CoordinatorState::learn_view(const View& view, Moment at) {
  if (view.generation <= std::max(newest_view(), made_)) return;
  state_.view = view;
  const auto age = [](const GoingBack& back) { return std::pair(back.durable, back.count); };
  if (age(view.going_back) > age(state_.going_back)) state_.going_back = view.going_back;
  state_.at_least = std::max(state_.at_least, Generation(view.generation.value + kSkippedNumbers - 1));
  state_.listens_until = std::max(state_.listens_until, at.now + options_.cluster.settle_seconds);
  log(at, "took over view " + std::to_string(view.generation.value));
}

void CoordinatorState::learn_requests(const std::vector<ControlRequest>& requests) {
  for (const ControlRequest& request : requests) {
    last_request_ = std::max(last_request_, request.number);
    if (request.number <= taken_ || requests_.size() >= kMostRequests) continue;
    const auto place = std::lower_bound(requests_.begin(), requests_.end(), request,
                                        [](const auto& a, const auto& b) { return a.number < b.number; });
    if (place == requests_.end() || place->number != request.number) requests_.insert(place, request);
  }
}

void CoordinatorState::apply(const Heartbeat& heartbeat, Moment at, const Caller& caller) {
  Member& member = state_.members.at(heartbeat.id);
  const MemberReport& report = heartbeat.report;
  member.heard = at.now;
  member.phase = report.phase;
  const bool known_view = heartbeat.acting_view <= newest_view();
  if (!caller.token || known_view) member.view = std::max(member.view, heartbeat.acting_view);
  member.step = report.step;
  member.durable_step = report.durable_step;
  if (!member.guest) durable_ = std::max(durable_, report.durable_step);  // a guest saves in a directory of its own
  member.speed = report.speed;
  member.facts = report.facts;
  incarnations_[heartbeat.id].knows_end = heartbeat.knows_end;
  for (const auto& [peer, why] : report.lost) {
    const auto lost = state_.members.find(peer);
    if (lost == state_.members.end() || peer == heartbeat.id) continue;
    const bool fresh = lost->second.loss_reports.emplace(heartbeat.id, Member::LossReport{at.now, why}).second;
    if (fresh) due_ = at.now + options_.cluster.report_seconds;
  }
  const ViewMember* entry = state_.view ? state_.view->find(heartbeat.id) : nullptr;
  if (entry == nullptr || entry->joining) return;
  if (!member.guest || only_guests_compute(at.now)) {
    if (!report.dissolve.empty()) dissolve(heartbeat.id, report.dissolve, at);
    for (const auto& [peer, why] : report.wrong) lose_the_wrong(heartbeat.id, peer, why, at);
  }
  if (state_.view->leader() != heartbeat.id) return;  // only the leader can end the run or take requests
  if (member.guest) return refuse_the_end(report, at, member);
  if (report.finished && !state_.finished) {
    state_.finished = report.finished;
    log(at, "member " + std::to_string(heartbeat.id.value) + " ends the run with exit code " +
                std::to_string(*report.finished));
  }
  taken_ = std::max(taken_, report.taken_requests);
  last_request_ = std::max(last_request_, taken_);
  std::erase_if(requests_, [&](const ControlRequest& request) {
    if (request.number > taken_) return false;
    unsaved_requests_.push_back({request, report.step});
    return true;
  });
  while (unsaved_requests_.size() > kMostRequests) unsaved_requests_.pop_front();
}

// No checkpoint has these requests, so members that begin from a checkpoint do not know them. The next leader ignores
// those that its checkpoint has, because that also has their numbers.
void CoordinatorState::offer_unsaved_requests(Moment at) {
  std::erase_if(unsaved_requests_, [&](const TakenRequest& one) { return durable_ > one.step + 1; });
  if (unsaved_requests_.empty()) return;
  std::vector<ControlRequest> all;
  for (const TakenRequest& one : unsaved_requests_) all.push_back(one.request);
  log(at, "offers " + std::to_string(all.size()) + " requests again that no checkpoint has");
  all.insert(all.end(), requests_.begin(), requests_.end());
  all.resize(std::min(all.size(), kMostRequests));
  requests_ = std::move(all);
  unsaved_requests_.clear();
  taken_ = requests_.front().number - 1;
}

// Returns whether each member that has the state is known to be a guest.
bool CoordinatorState::only_guests_compute(double now) const {
  if (listening(now) || !state_.view) return false;
  return std::ranges::all_of(state_.view->computing(), [&](MemberId id) {
    const auto member = state_.members.find(id);
    return member != state_.members.end() && member->second.guest;
  });
}

// Called if a guest leads a run that has members with the run's secret. The files of the guest are not those of the
// run, and it may lie. So it cannot end the run: the group goes on without it, and if no other member has the state,
// from the newest checkpoint. If no member with the run's secret is here now, the guest's report waits for one.
void CoordinatorState::refuse_the_end(const MemberReport& report, Moment at, Member& guest) {
  const bool any_own = std::ranges::any_of(state_.members, [](const auto& one) { return !one.second.guest; });
  if (report.finished && any_own && !listening(at.now) && guest.lost.empty())
    guest.lost = "it joined by a token, so it cannot end the run";
}

// The results that the members of the view have in common cannot be trusted, so none of these members may go on. This
// includes members that do not know it yet. No member that has the state is then left, and the next members begin from
// the newest checkpoint. If the run went back too often, their leader ends it: only a leader may write its report.
void CoordinatorState::dissolve(MemberId by, const std::string& why, Moment at) {
  if (!dissolved_.empty()) return;
  dissolved_ = why;
  state_.going_back = state_.going_back.once_more(durable_, one_line(why, kLongestText));
  log(at, "member " + std::to_string(by.value) + " ends the group: " + why +
              "; all members begin again from the newest checkpoint");
  if (!options_.on_view) return;
  View ended = *state_.view;
  ended.dissolved = true;
  ended.going_back = state_.going_back;
  // Otherwise a successor would take over the view, and a member that does not know of its end could go on.
  options_.on_view(ended);
}

// A third member has decided already, so the coordinator believes the report. The group goes on without the member, and
// the next view says why.
void CoordinatorState::lose_the_wrong(MemberId by, MemberId peer, const std::string& why, Moment at) {
  const auto member = state_.members.find(peer);
  const ViewMember* entry = state_.view->find(peer);
  if (member == state_.members.end() || entry == nullptr || entry->joining || !member->second.lost.empty()) return;
  member->second.lost = why;
  log(at, "member " + std::to_string(by.value) + " reports: " + why);
}

std::string CoordinatorState::requests_key() const {
  std::string key;
  if (!requests_.empty()) {
    key = std::to_string(requests_.front().number) + "-" + std::to_string(requests_.back().number) + "-" +
          std::to_string(requests_.size());
  }
  return key;
}

HeartbeatReply CoordinatorState::reply_for(MemberId id, Generation known_view, const std::string& known_requests,
                                           bool knows_end, double now) const {
  HeartbeatReply reply;
  reply.term = options_.term;
  reply.requests_key = requests_key();
  if (reply.requests_key != known_requests) reply.requests = requests_;
  if (state_.finished && !knows_end) reply.finished = state_.finished;
  if (!state_.view) return reply;
  reply.newest = state_.view->generation;
  const bool in_view = state_.view->find(id) != nullptr;
  reply.lease = in_view && !listening(now);
  if (in_view && state_.view->generation > known_view) reply.view = state_.view;
  return reply;
}

std::optional<Reply> CoordinatorState::updates(const UpdatesPoll& poll, Moment at) const {
  if (const auto trouble = trouble_of(poll.caller, at)) return fenced_reply(trouble->what);
  if (const auto fenced = fenced_.find(poll.incarnation); fenced != fenced_.end()) return fenced_reply(fenced->second);
  const auto incarnation = incarnations_.find(poll.id);
  if (incarnation == incarnations_.end() || incarnation->second.name != poll.incarnation) return introduce_reply();
  if (auto refused = refuse_other(incarnation->second.caller, poll.caller)) return refused;
  const HeartbeatReply reply = reply_for(poll.id, poll.known_view, poll.requests_key, poll.knows_end, at.now);
  if (!reply.view && !reply.requests && !reply.finished) return std::nullopt;
  return reply_of(reply);
}

Reply CoordinatorState::no_updates(const UpdatesPoll& poll, Moment at) const {
  return reply_of(reply_for(poll.id, poll.known_view, poll.requests_key, poll.knows_end, at.now));
}

}  // namespace sinew::cluster
