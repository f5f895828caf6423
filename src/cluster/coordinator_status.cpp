#include "cluster/coordinator_status.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/printable.h"
#include "cluster/json.h"
#include "cluster/messages.h"
#include "cluster/view_json.h"

namespace sinew::cluster {
namespace {

constexpr double kMostSeconds = 1e12;
constexpr size_t kMostDecisions = 1000;

// ---- as JSON -------------------------------------------------------------------------------------------------------

Json json_of(const MemberStatus& member) {
  Json json = {{"id", member.id}};
  if (!member.host.empty()) json["host"] = member.host;
  if (member.pid > 0) json["pid"] = member.pid;
  json.update({{"address", member.address},
               {"phase", member.phase},
               {"in_view", member.in_view},
               {"view", member.view},
               {"step", member.step},
               {"durable_step", member.durable_step},
               {"speed", member.speed},
               {"here_seconds", member.here_seconds},
               {"silent_seconds", member.silent_seconds},
               {"work_share", member.work_share}});
  if (member.donor > 0) json["donor"] = member.donor;
  if (!member.token.empty()) json["token"] = member.token;
  return json;
}

MemberStatus member_status_of(Fields& fields) {
  MemberStatus member;
  member.id = fields.whole("id", 1);
  member.host = printable(fields.text("host", kLongestAddress, ""));
  member.pid = fields.whole("pid", 0, 0);
  member.address = printable(fields.text("address", kLongestAddress));
  member.phase = printable(fields.text("phase", 32));
  member.in_view = fields.truth("in_view", false);
  member.view = fields.whole("view", 0);
  member.step = fields.whole("step", 0);
  member.durable_step = fields.whole("durable_step", -1);
  member.speed = fields.number("speed", 0, kMostSpeed);
  member.here_seconds = fields.number("here_seconds", 0, kMostSeconds);
  member.silent_seconds = fields.number("silent_seconds", 0, kMostSeconds);
  member.work_share = fields.number("work_share", 0, 1);
  member.donor = fields.whole("donor", 1, 0);
  member.token = printable(fields.text("token", kLongestAddress, ""));
  return member;
}

std::vector<MemberStatus> members_of(Fields& fields) {
  std::vector<MemberStatus> members;
  const Json* list = fields.list("members", kMostMembers);
  if (list == nullptr) {
    fields.blame("\"members\" is missing: a list");
    return members;
  }
  for (const Json& one : *list) {
    Fields inner(one);
    members.push_back(member_status_of(inner));
    if (!inner.problem().empty()) fields.blame("members: " + inner.problem());
  }
  return members;
}

std::vector<LoggedDecision> decisions_of(Fields& fields) {
  std::vector<LoggedDecision> decisions;
  const Json* list = fields.list("decisions", kMostDecisions);
  if (list == nullptr) return decisions;
  for (const Json& one : *list) {
    Fields inner(one);
    decisions.push_back({printable(inner.text("at", 64)), printable(inner.text("text", 2 * kLongestWhy))});
    if (!inner.problem().empty()) fields.blame("decisions: " + inner.problem());
  }
  return decisions;
}

std::optional<RecoveryStatus> recovery_of(Fields& fields) {
  const Json* json = fields.object("last_recovery");
  if (json == nullptr) return std::nullopt;
  Fields inner(*json);
  RecoveryStatus recovery;
  recovery.generation = inner.whole("generation", 0);
  recovery.why = printable(inner.text("why", kLongestWhy));
  recovery.seconds_ago = inner.number("seconds_ago", 0, kMostSeconds);
  if (inner.has("seconds")) recovery.seconds = inner.number("seconds", 0, kMostSeconds);
  if (!inner.problem().empty()) fields.blame("last_recovery: " + inner.problem());
  return recovery;
}

CoordinatorStatus status_of(Fields& fields) {
  CoordinatorStatus status;
  status.job = printable(fields.text("job", kLongestText));
  status.run_directory = printable(fields.text("run_directory", kLongestWhy));
  status.wanted = fields.whole("wanted", 0);
  status.minimum = fields.whole("minimum", 0);
  status.listening = fields.truth("listening", false);
  status.running_seconds = fields.number("running_seconds", 0, kMostSeconds);
  status.why = printable(fields.text("why", kLongestWhy));
  status.members = members_of(fields);
  status.requests = requests_of(fields);
  status.decisions = decisions_of(fields);
  status.view = view_in(fields);
  status.leader = fields.whole("leader", 1, 0);
  if (const Json* facts = fields.object("facts")) status.facts = dump(*facts);
  if (fields.has("finished")) status.finished = fields.whole("finished", 0, std::nullopt, 255);
  status.last_recovery = recovery_of(fields);
  return status;
}

// ---- as text -------------------------------------------------------------------------------------------------------

std::string recovery_text(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, seconds < 1 ? "%.3f s" : "%.1f s", seconds);
  return text;
}

std::string recovery_text(const RecoveryStatus& recovery) {
  const std::string took = recovery.seconds ? "took " + recovery_text(*recovery.seconds) : "has not finished";
  return "last recovery " + took + ", " + recovery_text(recovery.seconds_ago) + " ago: " + recovery.why + "\n";
}

// Returns the metadata as text: {"loss": 0.3, "epoch": 2} becomes "loss 0.3, epoch 2". Skips lists and objects, which
// only `ps --json` shows.
std::string facts_text(const std::string& facts) {
  const auto json = parse_json(facts);
  if (!json || !json->is_object()) return "";
  std::string text;
  for (const auto& [key, value] : json->items()) {
    if (!value.is_primitive() || value.is_null()) continue;
    text += (text.empty() ? "" : ", ") + key + " " + (value.is_string() ? value.get<std::string>() : dump(value));
  }
  return printable(text);
}

std::string member_table(const CoordinatorStatus& status) {
  char line[512];
  std::snprintf(line, sizeof line, "\n%8s  %8s  %-16s %-10s %6s  %9s  %8s\n", "id", "pid", "host", "phase", "share",
                "shards/s", "step");
  std::string text = line;
  const bool tokens = std::ranges::any_of(status.members, [](const auto& member) { return !member.token.empty(); });
  if (tokens) text.insert(text.size() - 1, "  join token");
  for (const MemberStatus& member : status.members) {
    const std::string phase = member.phase + (member.id == status.leader ? "*" : "");
    std::snprintf(line, sizeof line, "%8lld  %8lld  %-16.64s %-10s %5.0f%%  %9.1f  %8lld\n",
                  static_cast<long long>(member.id), static_cast<long long>(member.pid), member.host.c_str(),
                  phase.c_str(), 100 * member.work_share, member.speed, static_cast<long long>(member.step));
    text += line;
    if (!member.token.empty()) text.insert(text.size() - 1, "  " + member.token);
  }
  return text;
}

}  // namespace

int64_t CoordinatorStatus::step() const {
  int64_t highest = 0;
  for (const MemberStatus& member : members) highest = std::max(highest, member.step);
  return highest;
}

int64_t CoordinatorStatus::own_step() const {
  int64_t highest = 0;
  for (const MemberStatus& member : members) highest = std::max(highest, member.token.empty() ? member.step : 0);
  return highest;
}

int64_t CoordinatorStatus::durable_step() const {
  int64_t highest = -1;
  for (const MemberStatus& member : members) highest = std::max(highest, member.durable_step);
  return highest;
}

std::string to_json(const CoordinatorStatus& status) {
  Json members = Json::array();
  for (const MemberStatus& member : status.members) members.push_back(json_of(member));
  Json requests = Json::array();
  for (const ControlRequest& request : status.requests) requests.push_back(json_of(request));
  Json decisions = Json::array();
  for (const LoggedDecision& decision : status.decisions)
    decisions.push_back({{"at", decision.at}, {"text", decision.text}});
  Json json = {{"job", status.job},
               {"run_directory", status.run_directory},
               {"wanted", status.wanted},
               {"minimum", status.minimum},
               {"listening", status.listening},
               {"running_seconds", status.running_seconds},
               {"why", status.why},
               {"members", std::move(members)},
               {"requests", std::move(requests)},
               {"decisions", std::move(decisions)}};
  if (status.view) json["view"] = json_of(*status.view);
  if (status.leader > 0) json["leader"] = status.leader;
  const auto facts = parse_json(status.facts);
  if (facts && facts->is_object()) json["facts"] = *facts;
  if (status.finished) json["finished"] = *status.finished;
  if (const auto& recovery = status.last_recovery) {
    json["last_recovery"] = {
        {"generation", recovery->generation}, {"why", recovery->why}, {"seconds_ago", recovery->seconds_ago}};
    if (recovery->seconds) json["last_recovery"]["seconds"] = *recovery->seconds;
  }
  return dump(json);
}

CoordinatorStatus status_of_json(const std::string& text) {
  const auto json = parse_json(text);
  std::string problem = "it is not JSON";
  if (json) {
    Fields fields(*json);
    CoordinatorStatus status = status_of(fields);
    if (fields.problem().empty()) return status;
    problem = fields.problem();
  }
  throw Error("COORDINATOR_BAD_STATUS", "the coordinator's status cannot be understood: " + problem,
              "use the same version of sinew as the run's coordinator");
}

LocalProcesses processes_on(const std::string& host, const CoordinatorStatus& status) {
  LocalProcesses local;
  for (const MemberStatus& member : status.members) {
    if (!member.token.empty() || member.host != host) continue;
    if (member.phase == name_of(Member::Phase::computing)) local.computing.push_back(static_cast<pid_t>(member.pid));
    if (member.phase == name_of(Member::Phase::leaving)) local.leaving.push_back(static_cast<pid_t>(member.pid));
  }
  return local;
}

std::string status_text(const std::string& run_directory, const CoordinatorStatus& status) {
  constexpr size_t kLastDecisions = 5;
  std::string text = run_directory + ": " + std::to_string(status.members.size()) + " of " +
                     std::to_string(status.wanted) + " workers, step " + std::to_string(status.step());
  if (status.durable_step() >= 0) text += ", newest checkpoint at step " + std::to_string(status.durable_step());
  text += "\n";
  if (const std::string facts = facts_text(status.facts); !facts.empty()) text += facts + "\n";
  if (status.finished) text += "the run ends with exit code " + std::to_string(*status.finished) + "\n";
  text += member_table(status);
  text += "\n" + (status.view ? "generation " + std::to_string(status.generation()) : "no view yet") +
          (status.why.empty() ? "" : ": " + status.why) + "\n";
  if (status.last_recovery) text += recovery_text(*status.last_recovery);
  if (!status.decisions.empty()) text += "\nlast decisions:\n";
  for (size_t i = status.decisions.size() - std::min(kLastDecisions, status.decisions.size());
       i < status.decisions.size(); ++i)
    text += "  " + status.decisions[i].at + " " + status.decisions[i].text + "\n";
  return text;
}

}  // namespace sinew::cluster
