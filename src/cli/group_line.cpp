#include "cli/group_line.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/cluster.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Names and hosts come over the network; a terminal must not be driven by them.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

template <typename T>
T value_of(const Json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? otherwise : found->get<T>();
}

GroupMember member_of(const Json& json) {
  GroupMember member;
  member.id = value_of<int64_t>(json, "id", 0);
  member.pid = value_of<int64_t>(json, "pid", 0);
  member.host = printable(value_of<std::string>(json, "host", ""));
  member.phase = printable(value_of<std::string>(json, "phase", "?"));
  member.step = value_of<int64_t>(json, "step", 0);
  member.durable_step = value_of<int64_t>(json, "durable_step", -1);
  member.speed = value_of<double>(json, "speed", 0);
  return member;
}

// The view says who has a seat and how much of the work.
void read_view(const Json& view, GroupStatus& status) {
  status.generation = value_of<int64_t>(view, "generation", 0);
  status.why = printable(value_of<std::string>(view, "why", ""));
  bool led = false;
  for (const Json& seat : value_of<Json>(view, "seats", Json::array())) {
    const bool computes = !value_of<bool>(seat, "joining", false);
    for (GroupMember& member : status.members) {
      if (member.id != value_of<int64_t>(seat, "id", -1)) continue;
      member.seated = true;
      member.share = value_of<double>(seat, "share", 0);
      member.lead = computes && !led;
    }
    led = led || computes;
  }
}

}  // namespace

GroupStatus parse_status(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    GroupStatus status;
    status.job = printable(value_of<std::string>(json, "job", ""));
    status.wanted = json.at("wanted").get<int64_t>();
    status.minimum = value_of<int64_t>(json, "minimum", 1);
    if (json.contains("finished") && !json["finished"].is_null()) status.finished = json["finished"].get<int64_t>();
    for (const Json& member : json.at("members")) status.members.push_back(member_of(member));
    if (json.contains("view") && !json["view"].is_null()) read_view(json["view"], status);
    for (const Json& line : value_of<Json>(json, "decisions", Json::array()))
      status.decisions.push_back(printable(line.get<std::string>()));
    for (const GroupMember& member : status.members) {
      status.step = std::max(status.step, member.step);
      status.durable_step = std::max(status.durable_step, member.durable_step);
    }
    return status;
  } catch (const nlohmann::json::exception& error) {
    throw Error(std::string("the coordinator's status can not be understood: ") + error.what(),
                "are both of the same version of sinew?");
  }
}

std::string status_text(const std::string& run_directory, const GroupStatus& status) {
  double shares = 0;
  for (const GroupMember& member : status.members) shares += member.share;
  char line[512];
  std::string text = run_directory + ": " + std::to_string(status.members.size()) + " of " +
                     std::to_string(status.wanted) + " workers, step " + std::to_string(status.step) +
                     (status.durable_step >= 0 ? ", checkpoint at " + std::to_string(status.durable_step) : "") + "\n";
  if (status.finished) text += "the run ends with exit code " + std::to_string(*status.finished) + "\n";
  std::snprintf(line, sizeof line, "\n%8s  %8s  %-16s %-10s %6s  %9s  %8s\n", "id", "pid", "host", "phase", "share",
                "shards/s", "step");
  text += line;
  for (const GroupMember& member : status.members) {
    const std::string phase = member.phase + (member.lead ? "*" : "");
    std::snprintf(line, sizeof line, "%8lld  %8lld  %-16.64s %-10s %5.0f%%  %9.1f  %8lld\n",
                  static_cast<long long>(member.id), static_cast<long long>(member.pid), member.host.c_str(),
                  phase.c_str(), shares > 0 ? 100 * member.share / shares : 0.0, member.speed,
                  static_cast<long long>(member.step));
    text += line;
  }
  if (status.generation > 0) text += "\ngeneration " + std::to_string(status.generation) + ": " + status.why + "\n";
  if (!status.decisions.empty()) text += "\nlast decisions:\n";
  for (const std::string& decision : status.decisions) text += "  " + decision + "\n";
  return text;
}

std::string control_text(const std::string& kind, double value, const std::string& reason) {
  return dump({{"kind", kind}, {"value", value}, {"reason", reason}});
}

std::string scale_text(int64_t wanted) {
  return dump({{"wanted", wanted}});
}

GroupLine::GroupLine(std::string url, std::string secret, double timeout_seconds)
    : url_(std::move(url)), secret_(std::move(secret)), timeout_seconds_(timeout_seconds) {}

std::optional<GroupStatus> GroupLine::status() const {
  try {
    return parse_status(cluster::call(url_, secret_, "GET", "/v1/status", "", timeout_seconds_));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool GroupLine::post(const std::string& path, const std::string& body) const {
  try {
    cluster::call(url_, secret_, "POST", path, body, timeout_seconds_);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool GroupLine::lost(int64_t pid, const std::string& why) const {
  return post("/v1/lost", dump({{"pid", pid}, {"why", why}}));
}

bool GroupLine::control(const std::string& kind, double value, const std::string& reason) const {
  return post("/v1/control", control_text(kind, value, reason));
}

bool GroupLine::scale(int64_t wanted) const {
  return post("/v1/scale", scale_text(wanted));
}

std::string ask_running(const GroupFile& file, const std::string& run_directory, const std::string& method,
                        const std::string& path, const std::string& body) {
  // A coordinator that died has a successor within a fraction of a second: ask once more.
  for (bool again = false;; again = true) {
    const GroupFile newest = again ? read_group_file(run_directory).value_or(file) : file;
    try {
      return cluster::call(newest.url, newest.secret, method, path, body);
    } catch (const Error& error) {
      if (!again) {
        system_clock().sleep_seconds(1);
        continue;
      }
      throw Error(run_directory + ": " + error.what(),
                  "sinew runs show " + run_directory + " says whether the run is still going on");
    }
  }
}

}  // namespace sinew::cli
