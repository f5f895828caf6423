// Defines the status of a coordinator, which GET /v2/status returns and `sinew ps` shows (docs/formats/coordinator.md).
//
// The coordinator writes this struct as JSON, and its callers read it back from the JSON.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/control_request.h"
#include "cluster/view.h"

namespace sinew::cluster {

struct MemberStatus {
  int64_t id = 0, pid = 0;           // pid: 0 if the caller may not know the process
  std::string host, address, phase;  // host: empty if the caller may not know the machine
  bool in_view = false;
  double work_share = 0;  // fraction of all the work, 0 to 1
  int64_t view = 0;       // generation of the newest view by which the member acts; 0: it has no view yet
  int64_t step = 0, durable_step = -1;
  double speed = 0;  // shards a second
  double here_seconds = 0, silent_seconds = 0;
  std::string token;  // id of the join token with which the member joined; empty: the run's secret
  int64_t donor = 0;  // the donor of a joining member; 0: the member does not join
};

struct RecoveryStatus {
  int64_t generation = 0;
  std::string why;
  double seconds_ago = 0;
  std::optional<double> seconds;  // nullopt: the recovery is not over
};

struct LoggedDecision {
  std::string at, text;  // at: UTC
};

struct CoordinatorStatus {
  std::string job, run_directory;
  int64_t wanted = 0, minimum = 0;
  bool listening = false;  // true: the coordinator replaced a dead one, listens to the members and does not decide yet
  double running_seconds = 0;
  std::string why;  // reason of the newest decision
  std::vector<MemberStatus> members;
  std::vector<ControlRequest> requests;   // requests that the leader has not taken yet
  std::vector<LoggedDecision> decisions;  // oldest first
  std::optional<View> view;
  int64_t leader = 0;               // 0: there is no view
  std::string facts;                // a JSON object from the leader; may be empty
  std::optional<int64_t> finished;  // the run's exit code
  std::optional<RecoveryStatus> last_recovery;

  int64_t generation() const { return view ? view->generation.value : 0; }
  int64_t step() const;          // the highest step of all members
  int64_t own_step() const;      // the highest step of the members that joined with the run's secret
  int64_t durable_step() const;  // the highest durable step of all members; -1: there is no checkpoint
};
std::string to_json(const CoordinatorStatus& status);
// Replaces control characters in texts by spaces. Throws Error when the text is not a status.
CoordinatorStatus status_of_json(const std::string& text);

// The processes of one machine, by phase. Signals follow from this list, and a member says itself on which machine it
// is and which process. So the list has only members that joined with the run's secret.
struct LocalProcesses {
  std::vector<pid_t> computing;
  std::vector<pid_t> leaving;
};
LocalProcesses processes_on(const std::string& host, const CoordinatorStatus& status);

// The status as a table and sentences, for a terminal.
std::string status_text(const std::string& run_directory, const CoordinatorStatus& status);

}  // namespace sinew::cluster
