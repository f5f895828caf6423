// What `sinew` says to the coordinator of a run and hears from it (docs/formats/coordinator.md).
//
// For the supervisor, ps, scale, control, chaos. The supervisor must go on whatever the coordinator does, so its calls
// give back what failed; the commands of people throw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/group_file.h"

namespace sinew::cli {

struct GroupMember {
  int64_t id = 0, pid = 0, step = 0, durable_step = -1;
  std::string host, phase;
  double share = 0, speed = 0;
  bool seated = false;  // in the newest view
  bool lead = false;
};

struct GroupStatus {
  int64_t wanted = 0, minimum = 0, step = 0, durable_step = -1, generation = 0;
  std::string job, why;  // of the newest view
  std::optional<int64_t> finished;
  std::vector<GroupMember> members;
  std::vector<std::string> decisions;  // the last ones, oldest first
};
// Throws Error when the text is no status.
GroupStatus parse_status(const std::string& text);

std::string status_text(const std::string& run_directory, const GroupStatus& status);  // for people

std::string control_text(const std::string& kind, double value, const std::string& reason);
std::string scale_text(int64_t wanted);

// For a supervisor, who goes on whatever happens: nullopt and false mean that it did not answer, or refused.
class GroupLine {
 public:
  GroupLine(std::string url, std::string secret, double timeout_seconds);
  std::optional<GroupStatus> status() const;
  bool lost(int64_t pid, const std::string& why) const;
  bool control(const std::string& kind, double value, const std::string& reason) const;
  bool scale(int64_t wanted) const;

 private:
  bool post(const std::string& path, const std::string& body) const;

  std::string url_, secret_;
  double timeout_seconds_;
};

// For a person: throws Error with what it said, or that the run is not running.
std::string ask_running(const GroupFile& file, const std::string& run_directory, const std::string& method,
                        const std::string& path, const std::string& body = "");

}  // namespace sinew::cli
