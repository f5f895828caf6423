#include "cluster/coordinator_client.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/process.h"
#include "cluster/cluster.h"

namespace sinew::cluster {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename T>
T value_of(const Json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? otherwise : found->get<T>();
}

GroupMember member_of(const Json& json) {
  GroupMember member;
  member.id = json.at("id").get<int64_t>();
  member.pid = value_of<int64_t>(json, "pid", 0);
  member.host = printable(value_of<std::string>(json, "host", ""));
  member.phase = printable(value_of<std::string>(json, "phase", "?"));
  member.step = value_of<int64_t>(json, "step", 0);
  member.speed = value_of<double>(json, "speed", 0);
  member.part = value_of<double>(json, "part", 0);
  return member;
}

std::string seconds_text(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, seconds < 1 ? "%.3f s" : "%.1f s", seconds);
  return text;
}

std::string recovery_of(const Json& json) {
  const std::string took =
      json.contains("seconds") ? "took " + seconds_text(json["seconds"].get<double>()) : std::string("is under way");
  return took + ", " + seconds_text(value_of<double>(json, "seconds_ago", 0)) +
         " ago: " + printable(value_of<std::string>(json, "why", ""));
}

// {"loss": 0.3, "epoch": 2} becomes "loss 0.3, epoch 2"; other kinds of values are shown by --json only.
std::string facts_of(const Json& json) {
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_primitive() || value.is_null()) continue;
    text += (text.empty() ? "" : ", ") + key + " " + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return printable(text);
}

}  // namespace

GroupStatus parse_status(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    GroupStatus status;
    status.wanted = json.at("wanted").get<int64_t>();
    status.leader = value_of<int64_t>(json, "leader", 0);
    status.why = printable(value_of<std::string>(json, "why", ""));
    if (json.contains("finished")) status.finished = json["finished"].get<int64_t>();
    for (const Json& member : json.at("members")) {
      status.members.push_back(member_of(member));
      status.step = std::max(status.step, status.members.back().step);
      status.durable_step = std::max(status.durable_step, value_of<int64_t>(member, "durable_step", -1));
    }
    if (json.contains("view")) status.generation = json["view"].at("generation").get<int64_t>();
    if (json.contains("last_recovery")) status.recovery = recovery_of(json["last_recovery"]);
    if (json.contains("facts")) status.facts = facts_of(json["facts"]);
    for (const Json& line : value_of<Json>(json, "decisions", Json::array()))
      status.decisions.push_back(
          printable(line.at("at").get<std::string>() + " " + line.at("text").get<std::string>()));
    return status;
  } catch (const nlohmann::json::exception& error) {
    throw Error("COORDINATOR_STATUS_INVALID",
                std::string("the coordinator's status cannot be understood: ") + error.what(),
                "are both of the same version of sinew?");
  }
}

LocalProcesses processes_on(const std::string& host, const GroupStatus& status) {
  LocalProcesses here;
  for (const GroupMember& member : status.members) {
    if (member.host != host) continue;
    if (member.phase == "computing") here.computing.push_back(static_cast<pid_t>(member.pid));
    if (member.phase == "leaving") here.leaving.push_back(static_cast<pid_t>(member.pid));
  }
  return here;
}

std::string status_text(const std::string& run_directory, const GroupStatus& status) {
  constexpr size_t kLastDecisions = 5;
  char line[512];
  std::string text = run_directory + ": " + std::to_string(status.members.size()) + " of " +
                     std::to_string(status.wanted) + " workers, step " + std::to_string(status.step);
  if (status.durable_step >= 0) text += ", newest checkpoint at step " + std::to_string(status.durable_step);
  text += "\n";
  if (!status.facts.empty()) text += status.facts + "\n";
  if (status.finished) text += "the run ends with exit code " + std::to_string(*status.finished) + "\n";
  std::snprintf(line, sizeof line, "\n%8s  %8s  %-16s %-10s %6s  %9s  %8s\n", "id", "pid", "host", "phase", "share",
                "shards/s", "step");
  text += line;
  for (const GroupMember& member : status.members) {
    const std::string phase = member.phase + (member.id == status.leader ? "*" : "");
    std::snprintf(line, sizeof line, "%8lld  %8lld  %-16.64s %-10s %5.0f%%  %9.1f  %8lld\n",
                  static_cast<long long>(member.id), static_cast<long long>(member.pid), member.host.c_str(),
                  phase.c_str(), 100 * member.part, member.speed, static_cast<long long>(member.step));
    text += line;
  }
  text += "\n" + (status.generation > 0 ? "generation " + std::to_string(status.generation) : "no view yet") +
          (status.why.empty() ? "" : ": " + status.why) + "\n";
  if (!status.recovery.empty()) text += "last recovery " + status.recovery + "\n";
  if (!status.decisions.empty()) text += "\nlast decisions:\n";
  for (size_t i = status.decisions.size() - std::min(kLastDecisions, status.decisions.size());
       i < status.decisions.size(); ++i)
    text += "  " + status.decisions[i] + "\n";
  return text;
}

std::string control_body(const std::string& kind, double value, const std::string& reason) {
  return dump({{"kind", kind}, {"value", value}, {"reason", reason}});
}

std::string scale_body(int64_t wanted) {
  return dump({{"workers", wanted}});
}

CoordinatorClient::CoordinatorClient(std::string url, std::string secret, double timeout_seconds)
    : url_(std::move(url)), secret_(std::move(secret)), timeout_seconds_(timeout_seconds) {}

std::optional<GroupStatus> CoordinatorClient::status() const {
  try {
    return parse_status(call(url_, secret_, "GET", "/v2/status", "", timeout_seconds_));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool CoordinatorClient::post(const std::string& path, const std::string& body) const {
  try {
    call(url_, secret_, "POST", path, body, timeout_seconds_);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool CoordinatorClient::lost(int64_t pid, const std::string& why) const {
  return post("/v2/lost", dump({{"pid", pid}, {"host", host_name()}, {"why", why}}));
}

bool CoordinatorClient::control(const std::string& kind, double value, const std::string& reason) const {
  return post("/v2/control", control_body(kind, value, reason));
}

bool CoordinatorClient::scale(int64_t wanted) const {
  return post("/v2/scale", scale_body(wanted));
}

std::string ask_coordinator(const CoordinatorInfo& info, const std::string& run_directory, const std::string& method,
                            const std::string& path, const std::string& body) {
  // A coordinator that died has a successor within a fraction of a second, so ask a second time.
  for (bool again = false;; again = true) {
    const CoordinatorInfo newest = again ? read_coordinator_info(run_directory).value_or(info) : info;
    try {
      return call(newest.url, newest.secret, method, path, body);
    } catch (const Error& error) {
      if (!again) {
        system_clock().sleep_seconds(1);
        continue;
      }
      throw Error("COORDINATOR_UNREACHABLE", run_directory + ": " + error.what(),
                  "sinew runs show " + run_directory + " says whether the run still goes on");
    }
  }
}

}  // namespace sinew::cluster
