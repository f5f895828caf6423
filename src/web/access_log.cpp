#include "web/access_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace sinew::web {
namespace {

constexpr size_t kLongestPath = 1000, kLongestPathOfStranger = 100, kMostAddresses = 100;
constexpr double kMinute = 60;

}  // namespace

// Returns whether this request of a stranger gets a line.
bool AccessLog::count_stranger(const std::string& address) {
  const bool is_known = strangers_.contains(address) || strangers_.size() < kMostAddresses;
  Stranger& stranger = strangers_[is_known ? address : ""];
  if (stranger.lines < kLinesOfAddress && lines_of_strangers_ < kLinesOfStrangers) {
    ++stranger.lines;
    ++lines_of_strangers_;
    return true;
  }
  ++stranger.left_out;
  return false;
}

// Writes how many requests of each stranger got no line.
void AccessLog::end_minute(double now) {
  for (const auto& [address, stranger] : strangers_) {
    if (stranger.left_out == 0) continue;
    options_.access_log(dump_json(nlohmann::ordered_json{{"at", utc_iso(options_.clock->wall_seconds())},
                                                         {"address", address},
                                                         {"token", ""},
                                                         {"left_out", stranger.left_out}}));
  }
  strangers_.clear();
  lines_of_strangers_ = 0;
  minute_began_ = now;
}

void AccessLog::write(const Line& line) {
  const bool is_stranger = line.token.empty();
  {
    const std::lock_guard lock(mutex_);
    if (const double now = this->now(); now - minute_began_ >= kMinute) end_minute(now);
    if (is_stranger && !count_stranger(line.address)) return;
  }
  const std::string path = line.path.substr(0, is_stranger ? kLongestPathOfStranger : kLongestPath);
  options_.access_log(dump_json(nlohmann::ordered_json{{"at", utc_iso(options_.clock->wall_seconds())},
                                                       {"address", line.address},
                                                       {"token", line.token},
                                                       {"method", line.method},
                                                       {"path", path},
                                                       {"status", line.status},
                                                       {"ms", std::round(line.ms * 10) / 10}}));
}

AccessEntry::AccessEntry(AccessLog& log, const http::Request& request)
    : log_(log), line_{request.peer, "", request.method, request.path.substr(0, kLongestPath)}, began_(log.now()) {}

void AccessEntry::finish(int status) {
  if (!log_.is_on() || finished_.exchange(true)) return;
  line_.status = status;
  line_.ms = (log_.now() - began_) * 1000;
  log_.write(line_);
}

}  // namespace sinew::web
