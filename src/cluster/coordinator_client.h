// Makes single calls to the coordinator of a run (docs/formats/coordinator.md).
//
// The supervisor, ps, scale, control and chaos use this code. The supervisor must continue if a call fails, so it uses
// CoordinatorClient, which never throws. The user's commands use the functions that throw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/coordinator_info.h"
#include "cluster/coordinator_status.h"

namespace sinew::cluster {

class CoordinatorClient {
 public:
  CoordinatorClient(std::string url, std::string secret, double timeout_seconds);
  std::optional<CoordinatorStatus> status() const;  // nullopt: there was no answer, or it could not be understood
  // The following calls return false if the coordinator did not answer, or refused.
  bool lost(int64_t pid, const std::string& why) const;  // reports that a process of this machine is lost
  bool control(const std::string& kind, double value, const std::string& reason) const;
  bool scale(int64_t wanted) const;

 private:
  bool post(const std::string& path, const std::string& body) const;

  std::string url_, secret_;
  double timeout_seconds_;
};

// Makes one call and returns the body of the answer. With https:// it trusts only a server that has the secret. Throws
// Error with what the coordinator answered, or COORDINATOR_UNREACHABLE.
std::string call(const std::string& url, const std::string& secret, const std::string& method, const std::string& path,
                 const std::string& body, double timeout_seconds = 5);

// Calls of the user's commands to the coordinator of this run. They throw Error with the coordinator's refusal, or with
// the reason why there is no answer. If the coordinator could not be reached or is not ready, they wait for a second
// and call once more, because another coordinator may have replaced it. If only the answer is missing, request_control
// does not call again: the coordinator would make two requests of the two calls.
std::string fetch_status(const CoordinatorInfo& info, const std::string& run_directory);  // JSON
void request_control(const CoordinatorInfo& info, const std::string& run_directory, const std::string& kind,
                     double value, const std::string& reason);
// Returns the members that had the token. Throws Error (COORDINATOR_ANSWER_DAMAGED) if the answer does not name them.
std::vector<int64_t> request_revocation(const CoordinatorInfo& info, const std::string& run_directory,
                                        const std::string& token_id);
void request_scale(const CoordinatorInfo& info, const std::string& run_directory, int64_t wanted);

}  // namespace sinew::cluster
