// Calls of other processes to the coordinator of a run (docs/formats/coordinator.md): its status, and requests to it.
//
// For the supervisor and for the commands ps, scale, control and chaos. The supervisor must go on whatever the
// coordinator does, so CoordinatorClient returns failures as values; ask_coordinator, for commands, throws.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/coordinator_info.h"

namespace sinew::cluster {

struct GroupMember {
  int64_t id = 0, pid = 0, step = 0;
  std::string host, phase;
  double part = 0;   // of the work, 0 to 1
  double speed = 0;  // shards a second
};

struct GroupStatus {
  int64_t wanted = 0, step = 0, durable_step = -1;
  int64_t generation = 0, leader = 0;  // 0: there is no view yet
  std::string why;                     // the reason of the newest decision
  std::optional<int64_t> finished;
  std::vector<GroupMember> members;
  std::string recovery;                // the last recovery in words; empty: there was none
  std::string facts;                   // of the leader, in words
  std::vector<std::string> decisions;  // oldest first
};
// Throws Error if the text is not a status.
GroupStatus parse_status(const std::string& text);

// The processes of one machine.
struct LocalProcesses {
  std::vector<pid_t> computing;
  std::vector<pid_t> leaving;  // for any reason
};
LocalProcesses processes_on(const std::string& host, const GroupStatus& status);

std::string status_text(const std::string& run_directory, const GroupStatus& status);  // for people

std::string control_body(const std::string& kind, double value, const std::string& reason);
std::string scale_body(int64_t wanted);

// nullopt and false mean that the coordinator did not answer, or refused.
class CoordinatorClient {
 public:
  CoordinatorClient(std::string url, std::string secret, double timeout_seconds);
  std::optional<GroupStatus> status() const;
  bool lost(int64_t pid, const std::string& why) const;  // a process of this machine
  bool control(const std::string& kind, double value, const std::string& reason) const;
  bool scale(int64_t wanted) const;

 private:
  bool post(const std::string& path, const std::string& body) const;

  std::string url_, secret_;
  double timeout_seconds_;
};

// Returns the coordinator's answer. Throws Error with its refusal, or if it cannot be reached.
std::string ask_coordinator(const CoordinatorInfo& info, const std::string& run_directory, const std::string& method,
                            const std::string& path, const std::string& body = "");

}  // namespace sinew::cluster
