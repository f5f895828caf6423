#include "jobs/attempt_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/proc.h"
#include "base/process.h"
#include "jobs/changed_at.h"
#include "jobs/reapers.h"
#include "rundir/rundir.h"

namespace sinew::jobs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kSweepSeconds = 20;
constexpr double kPatienceSeconds = 20;  // the longest wait for the reapers of a killed sinew to kill its command

std::string path_of(const std::string& directory) {
  return rundir::file_in(directory, rundir::kAttemptsFile);
}

std::string dumped(const Json& json) {
  return dump_json(json) + "\n";
}

void take_line(const std::string& line, std::vector<AttemptRecord>& records) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return;
  const auto number = static_cast<int64_t>(number_of(json, "attempt").value_or(0));
  const auto record = std::ranges::find(records, number, &AttemptRecord::attempt);
  if (text_or_empty(json, "event") == "begin" && record == records.end()) {
    AttemptRecord begun{number,
                        number_of(json, "time").value_or(0),
                        text_or_empty(json, "mark"),
                        text_or_empty(json, "host"),
                        text_or_empty(json, "boot"),
                        {},
                        std::nullopt,
                        "",
                        0,
                        false};
    if (const auto groups = json.find("groups"); groups != json.end() && groups->is_array()) {
      for (const Json& group : *groups) {
        if (group.is_string()) begun.groups.push_back(group.get<std::string>());
      }
    }
    records.push_back(std::move(begun));
  } else if (text_or_empty(json, "event") == "end" && record != records.end() && !record->reason) {
    record->reason = text_or_empty(json, "ending");
    record->why = text_or_empty(json, "why");
    record->seconds = number_of(json, "seconds").value_or(0);
    record->unkillable = json.contains("left");
  }
}

// Returns whether the process that took the lock is known to have ended; a zombie counts as ended. Returns false if the
// holder is unknown or on another machine.
bool holder_is_dead(const std::string& directory) {
  const auto holder = rundir::lock_holder(directory);
  if (!holder || holder->host != host_name()) return false;
  const ProcessRow row = process_row(holder->pid);
  return row.pid == 0 || row.state == 'Z' || row.state == 'X';
}

// Returns how long an attempt without a recorded end ran at least: the time from its begin to its newest output.
double seconds_seen(const std::string& directory, double began) {
  double seen = began;
  std::error_code code;
  for (fs::directory_iterator at(directory + "/output", code), end; !code && at != end; at.increment(code)) {
    seen = std::max(seen, changed_at(at->path()));
  }
  return seen - began;
}

}  // namespace

rundir::RunLock lock_run(const std::string& directory, Clock& clock) {
  const double end = clock.monotonic_seconds() + kPatienceSeconds;
  while (true) {
    auto lock = rundir::RunLock::take(directory, clock);
    if (lock) return std::move(*lock);
    if (clock.monotonic_seconds() < end && holder_is_dead(directory)) continue;
    throw Error("RUN_IN_USE", lock.error(),
                "sinew ps " + directory + " shows the processes of the run; sinew stop " + directory + " ends it");
  }
}

std::vector<AttemptRecord> read_attempts(Disk& disk, const std::string& directory) {
  std::vector<AttemptRecord> records;
  if (!disk.exists(path_of(directory))) return records;
  std::istringstream text(read_text(disk, path_of(directory)));
  for (std::string line; std::getline(text, line);) take_line(line, records);
  return records;
}

void AttemptLog::append(const std::string& line) {
  const std::string path = path_of(directory_);
  std::string text = line;
  const bool fresh = !disk_.exists(path);
  // A killed process may have left an unfinished line. A newline keeps it on a line of its own.
  if (!fresh) {
    const std::string before = read_text(disk_, path);
    if (!before.empty() && before.back() != '\n') text.insert(0, "\n");
  }
  const auto file = disk_.append(path);
  file->write(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
  if (fresh) disk_.sync_directory(directory_);
}

void AttemptLog::begin(const AttemptRecord& record) {
  append(dumped({{"event", "begin"},
                 {"attempt", record.attempt},
                 {"time", record.began},
                 {"mark", record.mark},
                 {"host", record.host},
                 {"boot", record.boot},
                 {"groups", record.groups}}));
}

void AttemptLog::end(int64_t attempt, const std::string& reason, const std::string& why, double seconds,
                     bool unkillable) {
  Json json = {{"event", "end"},   {"attempt", attempt}, {"time", clock_.wall_seconds()},
               {"ending", reason}, {"why", why},         {"seconds", seconds}};
  if (unkillable) json["left"] = true;
  append(dumped(json));
}

std::vector<AttemptRecord> AttemptLog::close_interrupted() {
  std::vector<AttemptRecord> open = read_attempts(disk_, directory_);
  struct stat facts {};
  const bool known = ::lstat(path_of(directory_).c_str(), &facts) == 0;
  const uid_t owner = known ? facts.st_uid : ::geteuid();
  const auto is_here = [](const AttemptRecord& record) {
    return record.host == host_name() && record.boot == boot_id();
  };
  for (const AttemptRecord& record : open) {
    if (record.unkillable && is_here(record)) sweep(record.mark, record.groups, owner, kSweepSeconds);
  }
  std::erase_if(open, [](const AttemptRecord& record) { return record.reason.has_value(); });
  for (AttemptRecord& record : open) {
    const int left = is_here(record) ? sweep(record.mark, record.groups, owner, kSweepSeconds) : 0;
    record.reason = "interrupted";
    record.why = "sinew was killed";
    if (left > 0) record.why += "; " + std::to_string(left) + " processes that it left were killed now";
    record.seconds = std::min(seconds_seen(directory_, record.began), clock_.wall_seconds() - record.began);
    record.seconds = std::max(0.0, record.seconds);
    end(record.attempt, *record.reason, record.why, record.seconds);
  }
  return open;
}

}  // namespace sinew::jobs
