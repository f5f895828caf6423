#include "cluster/messages.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hex.h"
#include "cluster/view_json.h"

namespace sinew::cluster {
namespace {

using Phase = Member::Phase;

constexpr std::array kPhases = {"waiting", "joining", "caught_up", "computing", "leaving", "finished"};

Json json_of(const Introduction& introduction) {
  Json json = {{"address", introduction.address},
               {"host", introduction.host},
               {"pid", introduction.pid},
               {"identity",
                {{"job", introduction.identity.job},
                 {"machine", introduction.identity.machine},
                 {"probe", introduction.identity.probe}}}};
  if (!introduction.proof.empty()) json["proof"] = introduction.proof;
  return json;
}

Json json_of(const std::vector<ControlRequest>& requests) {
  Json list = Json::array();
  for (const ControlRequest& request : requests) list.push_back(cluster::json_of(request));
  return list;
}

template <typename T>
std::expected<T, std::string> result_of(const Fields& fields, T value) {
  if (!fields.problem().empty()) return std::unexpected(fields.problem());
  return value;
}

Introduction introduction_of(Fields& fields) {
  Introduction introduction;
  introduction.address = fields.text("address", kLongestAddress);
  introduction.host = one_line(fields.text("host", kLongestAddress));
  introduction.pid = fields.whole("pid", 0);
  introduction.proof = fields.text("proof", kLongestText, "");
  const Json* identity = fields.object("identity");
  if (identity == nullptr) {
    fields.blame("\"identity\" is missing: an object of \"job\", \"machine\" and \"probe\"");
    return introduction;
  }
  Fields inner(*identity);
  introduction.identity.job = one_line(inner.text("job", kLongestText));
  introduction.identity.machine = one_line(inner.text("machine", kLongestText));
  introduction.identity.probe = one_line(inner.text("probe", kLongestText));
  if (!inner.problem().empty()) fields.blame("identity: " + inner.problem());
  return introduction;
}

Phase phase_of(Fields& fields) {
  const std::string name = fields.text("phase", 32);
  const auto found = std::find(kPhases.begin(), kPhases.end(), name);
  if (found != kPhases.end()) return static_cast<Phase>(found - kPhases.begin());
  fields.blame("\"phase\" is none of waiting, joining, caught_up, computing, leaving, finished");
  return Phase::waiting;
}

using Peers = std::vector<std::pair<MemberId, std::string>>;

// Reads a list of members, each with a reason.
Peers peers_of(Fields& fields, const std::string& key) {
  Peers peers;
  const Json* list = fields.list(key.c_str(), kMostMembers);
  if (list == nullptr) return peers;
  for (const Json& one : *list) {
    Fields inner(one);
    peers.emplace_back(MemberId(inner.whole("id", 1)), one_line(inner.text("why", kLongestText)));
    if (!inner.problem().empty()) fields.blame(key + ": " + inner.problem());
  }
  return peers;
}

void put_peers(Json& json, const std::string& key, const Peers& peers) {
  if (peers.empty()) return;
  json[key] = Json::array();
  for (const auto& [id, why] : peers) json[key].push_back({{"id", id.value}, {"why", one_line(why, kLongestText)}});
}

MemberReport report_of(Fields& fields) {
  MemberReport report;
  report.phase = phase_of(fields);
  report.step = fields.whole("step", 0);
  report.durable_step = fields.whole("durable_step", -1);
  report.speed = fields.number("speed", 0, kMostSpeed);
  report.facts = fields.text("facts", kLongestFacts, "");
  report.taken_requests = fields.whole("taken_requests", 0, 0);
  if (fields.has("finished")) report.finished = fields.whole("finished", 0, std::nullopt, 255);
  report.dissolve = one_line(fields.text("dissolve", kLongestText, ""), kLongestText);
  report.lost = peers_of(fields, "lost");
  report.wrong = peers_of(fields, "wrong");
  return report;
}

}  // namespace

std::vector<ControlRequest> requests_of(Fields& fields) {
  std::vector<ControlRequest> requests;
  const Json* list = fields.list("requests", kMostRequests);
  if (list == nullptr) return requests;
  for (const Json& one : *list) {
    Fields inner(one);
    ControlRequest request;
    request.number = inner.whole("number", 1);
    request.kind = inner.text("kind", 64);
    request.value = inner.number("value", -1e18, 1e18);
    request.reason = one_line(inner.text("reason", kLongestText));
    if (inner.problem().empty()) inner.blame(problem_of(request));
    if (!inner.problem().empty()) fields.blame("requests: " + inner.problem());
    requests.push_back(std::move(request));
  }
  return requests;
}

std::optional<View> view_in(Fields& fields) {
  const Json* json = fields.object("view");
  if (json == nullptr) return std::nullopt;
  auto view = view_of(*json);
  if (!view) fields.blame("\"view\" is not a view");
  return view;
}

Json json_of(const ControlRequest& request) {
  return {{"number", request.number}, {"kind", request.kind}, {"value", request.value}, {"reason", request.reason}};
}

std::string to_json(const JoinRequest& request) {
  Json json = json_of(request.introduction);
  json["incarnation"] = request.incarnation;
  if (request.key) json["key"] = hex_of(*request.key);
  return dump(json);
}

std::string to_json(const JoinReply& reply) {
  Json json = {{"id", reply.id.value}};
  if (reply.term > 0) json["term"] = reply.term;
  if (reply.certificate) json["certificate"] = hex_of(*reply.certificate);
  if (!reply.proof.empty()) json["proof"] = reply.proof;
  return dump(json);
}

std::string to_json(const Heartbeat& heartbeat) {
  const MemberReport& report = heartbeat.report;
  Json json = {{"id", heartbeat.id.value},
               {"incarnation", heartbeat.incarnation},
               {"known_view", heartbeat.known_view.value},
               {"requests_key", heartbeat.requests_key},
               {"acting_view", heartbeat.acting_view.value},
               {"phase", name_of(report.phase)},
               {"step", report.step},
               {"durable_step", report.durable_step},
               {"speed", std::isfinite(report.speed) ? std::clamp(report.speed, 0.0, kMostSpeed) : 0.0}};
  if (!report.facts.empty() && report.facts.size() <= kLongestFacts) json["facts"] = report.facts;
  if (report.taken_requests > 0) json["taken_requests"] = report.taken_requests;
  if (report.finished) json["finished"] = *report.finished;
  if (heartbeat.knows_end) json["knows_end"] = true;
  if (heartbeat.term > 0) json["term"] = heartbeat.term;
  if (!report.dissolve.empty()) json["dissolve"] = one_line(report.dissolve, kLongestText);
  put_peers(json, "lost", report.lost);
  put_peers(json, "wrong", report.wrong);
  if (heartbeat.introduction) {
    json["introduction"] = json_of(*heartbeat.introduction);
    if (report.view) json["view"] = json_of(*report.view);
    if (!heartbeat.requests.empty()) json["requests"] = json_of(heartbeat.requests);
  }
  return dump(json);
}

std::string to_json(const HeartbeatReply& reply) {
  Json json = {{"introduce", true}};
  if (!reply.introduce)
    json = {{"newest_view", reply.newest.value}, {"lease", reply.lease}, {"requests_key", reply.requests_key}};
  if (reply.term > 0) json["term"] = reply.term;
  if (reply.introduce) return dump(json);
  if (reply.fenced) json["fenced"] = *reply.fenced;
  if (reply.view) json["view"] = json_of(*reply.view);
  if (reply.requests) json["requests"] = json_of(*reply.requests);
  if (reply.finished) json["finished"] = *reply.finished;
  return dump(json);
}

std::expected<JoinRequest, std::string> join_request_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return std::unexpected("the body is not JSON");
  Fields fields(*json);
  JoinRequest request;
  request.introduction = introduction_of(fields);
  request.incarnation = fields.text("incarnation", kLongestText);
  if (fields.has("key")) {
    request.key = public_key_of_hex(fields.text("key", kLongestText));
    if (!request.key) fields.blame("\"key\" must be 64 hex digits");
  }
  return result_of(fields, std::move(request));
}

std::expected<JoinReply, std::string> join_reply_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return std::unexpected("the answer is not JSON");
  Fields fields(*json);
  JoinReply reply;
  reply.id = MemberId(fields.whole("id", 1));
  reply.term = fields.whole("term", 0, 0);
  if (fields.has("certificate")) {
    reply.certificate = signature_of_hex(fields.text("certificate", kLongestText));
    if (!reply.certificate) fields.blame("\"certificate\" must be 128 hex digits");
  }
  reply.proof = fields.text("proof", kLongestText, "");
  return result_of(fields, std::move(reply));
}

std::expected<Heartbeat, std::string> heartbeat_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return std::unexpected("the body is not JSON");
  Fields fields(*json);
  Heartbeat heartbeat;
  heartbeat.id = MemberId(fields.whole("id", 1));
  heartbeat.incarnation = fields.text("incarnation", kLongestText);
  heartbeat.known_view = Generation(fields.whole("known_view", 0));
  heartbeat.requests_key = fields.text("requests_key", kLongestText);
  heartbeat.acting_view = Generation(fields.whole("acting_view", 0));
  heartbeat.knows_end = fields.truth("knows_end", false);
  heartbeat.term = fields.whole("term", 0, 0);
  heartbeat.report = report_of(fields);
  heartbeat.report.view = view_in(fields);
  heartbeat.requests = requests_of(fields);
  if (const Json* introduction = fields.object("introduction")) {
    Fields inner(*introduction);
    heartbeat.introduction = introduction_of(inner);
    if (!inner.problem().empty()) fields.blame("introduction: " + inner.problem());
  }
  return result_of(fields, std::move(heartbeat));
}

std::expected<HeartbeatReply, std::string> heartbeat_reply_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return std::unexpected("the answer is not JSON");
  Fields fields(*json);
  HeartbeatReply reply;
  reply.term = fields.whole("term", 0, 0);
  reply.introduce = fields.truth("introduce", false);
  if (reply.introduce) return result_of(fields, std::move(reply));
  reply.newest = Generation(fields.whole("newest_view", 0));
  reply.lease = fields.truth("lease", false);
  reply.requests_key = fields.text("requests_key", kLongestText);
  if (fields.has("fenced")) reply.fenced = one_line(fields.text("fenced", kLongestWhy), kLongestWhy);
  reply.view = view_in(fields);
  if (fields.has("requests")) reply.requests = requests_of(fields);
  if (fields.has("finished")) reply.finished = fields.whole("finished", 0, std::nullopt, 255);
  return result_of(fields, std::move(reply));
}

std::string problem_of(const ControlRequest& request) {
  const RequestKind* kind = request_kind(request.kind);
  if (kind != nullptr && kind->logged) {
    return kind->accepts(request.value) ? "" : request.kind + ": \"value\" must be " + kind->value;
  }
  std::string known;
  for (const RequestKind& each : request_kinds()) {
    if (each.logged) known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  return "\"kind\" is none of " + known;
}

const char* name_of(Phase phase) {
  return kPhases.at(static_cast<size_t>(phase));
}

std::string one_line(std::string text, size_t most) {
  if (text.size() > most) text.resize(most);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return text;
}

}  // namespace sinew::cluster
