#include "cluster/coordinator_status.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/printable.h"
#include "base/short_number.h"
#include "cluster/cluster_state.h"
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

std::string recovery_text(const RecoveryStatus& recovery) {
  const std::string took = recovery.seconds ? "took " + short_number(*recovery.seconds) + " s" : "has not finished";
  return "last recovery " + took + ", " + short_seconds(recovery.seconds_ago) + " ago: " + recovery.why + "\n";
}

double number_in(const Json& facts, const char* name) {
  const auto found = facts.find(name);
  return found != facts.end() && found->is_number() ? found->get<double>() : -1;
}

// Returns what the leader reports, like the line that shows a run's progress: "step 120/2000  train/loss 0.2512  471
// samples/s  eta 1h53m". Facts with other names are metrics, too. Skips lists and objects, which only `ps --json`
// shows.
std::string progress_text(int64_t step, const std::string& text) {
  const auto facts = parse_json(text);
  if (!facts || !facts->is_object() || facts->empty()) return "";
  std::string line = "step " + std::to_string(step);
  if (const double total = number_in(*facts, "total_steps"); total > 0)
    line += "/" + std::to_string(static_cast<int64_t>(total));
  const auto append = [&line](const std::string& name, const Json& value) {
    if (value.is_number()) line += "  " + name + " " + short_number(value.get<double>());
    if (value.is_string()) line += "  " + name + " " + value.get<std::string>();
  };
  const auto metrics = facts->find("metrics");
  if (metrics != facts->end() && metrics->is_object()) {
    for (const auto& [name, value] : metrics->items()) append(name, value);
  }
  for (const auto& [name, value] : facts->items()) {
    const bool own_place = name == "step" || name == "total_steps" || name == "samples" ||
                           name == "samples_per_second" || name.starts_with("eta_");
    if (!own_place) append(name, value);
  }
  if (const double speed = number_in(*facts, "samples_per_second"); speed > 0)
    line += "  " + short_count(speed) + " samples/s";
  if (const double eta = number_in(*facts, "eta_seconds"); eta >= 0) {
    const double low = number_in(*facts, "eta_low_seconds"), high = number_in(*facts, "eta_high_seconds");
    line += "  eta " + (low >= 0 && high >= low ? short_seconds(low, high) : short_seconds(eta));
  }
  if (const auto best = facts->find("best_at_end"); best != facts->end() && best->is_object()) {
    const auto metric = best->find("metric"), low = best->find("low"), high = best->find("high");
    if (metric != best->end() && metric->is_string() && low != best->end() && low->is_number() && high != best->end() &&
        high->is_number())
      line += "  best " + metric->get<std::string>() + " " + short_range(low->get<double>(), high->get<double>());
  }
  return printable(line);
}

// Each column is as wide as its widest cell, so that the table fits into a narrow window.
std::string member_table(const CoordinatorStatus& status) {
  std::vector<std::vector<std::string>> rows = {{"id", "pid", "host", "phase", "share", "shards/s", "step"}};
  const bool tokens = std::ranges::any_of(status.members, [](const auto& member) { return !member.token.empty(); });
  if (tokens) rows[0].push_back("join token");
  for (const MemberStatus& member : status.members) {
    char share[32], speed[32];
    std::snprintf(share, sizeof share, "%.0f%%", 100 * member.work_share);
    std::snprintf(speed, sizeof speed, "%.1f", member.speed);
    rows.push_back({std::to_string(member.id), std::to_string(member.pid), member.host.substr(0, 64),
                    member.phase + (member.id == status.leader ? "*" : ""), share, speed, std::to_string(member.step)});
    if (tokens) rows.back().push_back(member.token);
  }
  std::string text;
  for (const auto& row : rows) {
    text += "\n";
    for (size_t i = 0; i < row.size(); ++i) {
      size_t width = 0;
      for (const auto& other : rows) width = std::max(width, other[i].size());
      const bool left = i == 2 || i == 3 || i == 7;  // texts
      const std::string blanks(width - row[i].size(), ' ');
      text.append("  ").append(left ? row[i] + blanks : blanks + row[i]);
    }
    text.resize(text.find_last_not_of(' ') + 1);
  }
  return text + "\n";
}

// "2026-11-21T03:15:02.123Z" becomes "2026-11-21 03:15:02".
std::string time_text(std::string at) {
  constexpr size_t kDate = 10, kSeconds = 19;
  if (at.size() <= kSeconds || at[kDate] != 'T') return at;
  at[kDate] = ' ';
  return at.substr(0, kSeconds);
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
                     std::to_string(status.wanted) + " workers";
  const std::string progress = progress_text(status.step(), status.facts);
  if (progress.empty()) text += ", step " + std::to_string(status.step());
  if (status.durable_step() >= 0) text += ", newest checkpoint at step " + std::to_string(status.durable_step());
  text += "\n";
  if (!progress.empty()) text += progress + "\n";
  if (status.finished) text += "the run ends with exit code " + std::to_string(*status.finished) + "\n";
  text += member_table(status);
  text += "\n";
  if (!status.view) text += "the workers do not train together yet\n";
  if (!status.why.empty() && status.why != kNothingChanged) text += status.why + "\n";
  if (status.last_recovery) text += recovery_text(*status.last_recovery);
  if (!status.decisions.empty()) text += "last decisions (times in UTC):\n";
  for (size_t i = status.decisions.size() - std::min(kLastDecisions, status.decisions.size());
       i < status.decisions.size(); ++i)
    text += "  " + time_text(status.decisions[i].at) + "  " + status.decisions[i].text + "\n";
  return text;
}

}  // namespace sinew::cluster
