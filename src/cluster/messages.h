// What a member and the coordinator say to each other, as JSON (docs/formats/coordinator.md). Read with suspicion:
// everything is checked for kind and range, and what is wrong is said by name.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/json.h"

namespace sinew::cluster {

constexpr size_t kMostRequests = 256;
constexpr size_t kLongestText = 1024;  // a reason, a name
constexpr size_t kLongestFacts = 1 << 16;

// Who a member is; with its first heartbeat to a coordinator that does not know it.
struct Introduction {
  std::string address, host;
  int64_t pid = 0;
  Identity identity;
};

// POST /v2/heartbeat
struct Heartbeat {
  MemberId id;
  std::string incarnation;   // chosen by the member when it joined: no other has it
  Generation known_view;     // newest view it was given
  std::string requests_key;  // of the requests it was given
  bool knows_end = false;
  MemberReport report;     // its view only with the introduction
  Generation acting_view;  // by this view
  std::optional<Introduction> introduction;
  std::vector<ControlRequest> requests;  // those it knows; with the introduction
};

// The answer to a heartbeat and to GET /v2/updates.
struct HeartbeatReply {
  bool introduce = false;  // the coordinator does not know this member: introduce yourself
  std::optional<std::string> fenced;
  Generation newest;         // 0: no view yet
  bool lease = false;        // in the newest view, and the coordinator vouches that it is the newest
  std::optional<View> view;  // when newer than what the member has
  std::string requests_key;  // of the requests
  std::optional<std::vector<ControlRequest>> requests;  // when others than the member has
  std::optional<int64_t> finished;
};

struct JoinRequest {
  Introduction introduction;
  std::string incarnation;
};

std::string to_json(const JoinRequest& call);
std::string to_json(const Heartbeat& heartbeat);
std::string to_json(const HeartbeatReply& reply);
std::expected<JoinRequest, std::string> join_request_of(const std::string& text);
std::expected<Heartbeat, std::string> heartbeat_of(const std::string& text);
std::expected<HeartbeatReply, std::string> heartbeat_reply_of(const std::string& text);

Json json_of(const ControlRequest& request);
// What is wrong with it, or empty. `number` is not looked at.
std::string problem_of(const ControlRequest& request);
const char* name_of(Member::Phase phase);
// One line a log can take: control characters become spaces, at most `most` bytes.
std::string one_line(std::string text, size_t most = 300);

}  // namespace sinew::cluster
