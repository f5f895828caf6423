// Writes and reads the messages between a member and the coordinator, as JSON (docs/formats/coordinator.md).
//
// The readers trust nothing: they check the kind and range of every field, and name the field that is wrong.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/key_pair.h"
#include "cluster/client.h"
#include "cluster/json.h"

namespace sinew::cluster {

constexpr size_t kMostRequests = 256;
constexpr size_t kLongestText = 1024;  // bytes of a reason or a name
constexpr size_t kLongestFacts = 1 << 16;
constexpr double kMostSpeed = 1e12;

// How a member introduces itself. It sends this with its first heartbeat to a coordinator that does not know it.
struct Introduction {
  std::string address, host;
  int64_t pid = 0;
  Identity identity;
  std::string proof = {};  // membership_proof(); empty in a join, and of a member that joined with the run's secret
};

// POST /v2/heartbeat
struct Heartbeat {
  MemberId id;
  std::string incarnation;   // a name that the member chose when it joined; no other member has it
  Generation known_view;     // the newest view it has received
  std::string requests_key;  // identifies the list of requests that the member has received
  bool knows_end = false;    // true: the member has received that the run is over
  int64_t term = 0;          // the newest term of a coordinator that the member has heard of
  MemberReport report;       // its view is sent only with the introduction
  Generation acting_view;    // the generation of the view by which the member acts; 0: it has no view yet
  std::optional<Introduction> introduction;
  std::vector<ControlRequest> requests;  // the requests that the member knows; sent only with the introduction
};

// The answer to a heartbeat and to GET /v2/updates.
struct HeartbeatReply {
  int64_t term = 0;  // the coordinator's term
  // the coordinator does not know the member, which must introduce itself; the other fields are not set
  bool introduce = false;
  std::optional<std::string> fenced;  // this incarnation has ended, for this reason
  Generation newest;                  // the generation of the newest view; 0: there is no view yet
  // true: the member is in the newest view, and the coordinator is sure that this view is the newest
  bool lease = false;
  std::optional<View> view;  // set if it is newer than known_view
  std::string requests_key;
  // all requests that are not taken; set if the member's requests_key differs
  std::optional<std::vector<ControlRequest>> requests;
  std::optional<int64_t> finished;  // the run's exit code; not set if the member knows it
};

// POST /v2/join
struct JoinRequest {
  Introduction introduction;
  std::string incarnation;
  // the public key of the member's links; nullopt: the member needs no certificate
  std::optional<PublicKey> key = std::nullopt;
};
struct JoinReply {
  MemberId id;
  int64_t term = 0;                      // the coordinator's term
  std::optional<Signature> certificate;  // the coordinator confirms that the member with this id has this key
  std::string proof = {};                // membership_proof(); empty for a member that joins with the run's secret
};

std::string to_json(const JoinRequest& request);
std::string to_json(const JoinReply& reply);
std::string to_json(const Heartbeat& heartbeat);
std::string to_json(const HeartbeatReply& reply);
std::expected<JoinRequest, std::string> join_request_of(const std::string& text);
std::expected<JoinReply, std::string> join_reply_of(const std::string& text);
std::expected<Heartbeat, std::string> heartbeat_of(const std::string& text);
std::expected<HeartbeatReply, std::string> heartbeat_reply_of(const std::string& text);

// Parts of messages. They report problems to `fields`.
Json json_of(const ControlRequest& request);
std::vector<ControlRequest> requests_of(Fields& fields);  // reads the field "requests"
std::optional<View> view_in(Fields& fields);              // reads the field "view"

// Returns the problem with a request, apart from its number, or an empty string if there is none.
std::string problem_of(const ControlRequest& request);
const char* name_of(Member::Phase phase);
// Returns the text as one line for a log: control characters become spaces, and at most `most` bytes remain.
std::string one_line(std::string text, size_t most = 300);

}  // namespace sinew::cluster
