// What `sinew` says to the coordinator of a run and hears from it (docs/formats/coordinator.md).
//
// For the supervisor, ps, scale, control, chaos. The supervisor must go on whatever the coordinator does, so its calls
// give back what failed; the commands of people throw.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/group_file.h"

namespace sinew::cli {

struct GroupMember {
  int64_t id = 0, pid = 0, step = 0;
  std::string host, phase;
  double part = 0;   // of the work, 0 to 1
  double speed = 0;  // shards a second
};

struct GroupStatus {
  int64_t wanted = 0, step = 0, durable_step = -1;
  int64_t generation = 0, leader = 0;  // 0: there is no view yet
  std::string why;                     // the newest decision's reason
  std::optional<int64_t> finished;
  std::vector<GroupMember> members;
  std::string recovery;                // the last one in words; empty: there was none
  std::string facts;                   // of the leader, in words
  std::vector<std::string> decisions;  // oldest first
};
// Throws Error when the text is no status.
GroupStatus parse_status(const std::string& text);

// Processes of one machine, by what they do.
struct ProcessesHere {
  std::vector<pid_t> computing;
  std::vector<pid_t> leaving;  // whoever told them to
};
ProcessesHere processes_on(const std::string& host, const GroupStatus& status);

std::string status_text(const std::string& run_directory, const GroupStatus& status);  // for people

std::string control_text(const std::string& kind, double value, const std::string& reason);
std::string scale_text(int64_t wanted);

// For a supervisor, who goes on whatever happens: nullopt and false mean that it did not answer, or refused.
class GroupLine {
 public:
  GroupLine(std::string url, std::string secret, double timeout_seconds);
  std::optional<GroupStatus> status() const;
  bool lost(int64_t pid, const std::string& why) const;  // a process of this machine
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
