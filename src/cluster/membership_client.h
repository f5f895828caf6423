// The state machine of a member's client: what the member sends to the coordinator, and what the answers mean. It has
// no network, no threads and no clock of its own. Client puts HTTP and threads around this class; a simulation puts its
// own network around it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/client.h"
#include "http/http.h"

namespace sinew::cluster {

// The actions that an answer requires of the member, in this order. An answer has no other effect.
struct ReplyActions {
  bool understood = false;      // false: treat the answer as if it had not come
  bool send_heartbeat = false;  // true: the coordinator waits for a heartbeat of this member
  std::optional<View> view = {};
  std::optional<std::vector<ControlRequest>> requests = {};
  std::optional<int64_t> finished = {};
  std::optional<std::string> fenced = {};  // the reason; this incarnation has ended, and no action follows
};

class MembershipClient {
 public:
  // `name` is a text that no other member has. It names this member's first incarnation.
  MembershipClient(const ClientOptions& options, std::string name)
      : options_(options), name_(std::move(name)), incarnation_(name_) {}

  // ---- joining
  std::string join_request() const;
  // Takes the answer to the join request. Returns false if the member must try again, with a new join_request(). Throws
  // Error when the coordinator refuses this member.
  bool joined(const http::Response& response, double now);
  MemberId id() const { return id_; }
  const Signature& certificate() const { return certificate_; }  // the certificate of ClientOptions::key

  // ---- sending
  std::string heartbeat() const;
  std::string updates_target() const;  // path and query of the long poll
  // Returns true if other members wait for the change, so a heartbeat must go out now. Otherwise the next pulse carries
  // it.
  bool report(const std::function<void(MemberReport&)>& change);

  // ---- receiving
  // Takes the answer to a heartbeat or a poll that was sent at `sent`.
  ReplyActions receive(const http::Response& response, double sent, double now);
  // Counts a failed call. Returns the reason why this incarnation ends if no coordinator answered for too long.
  std::optional<std::string> failed(const std::string& why, double now);
  bool introducing() const { return introducing_; }  // the coordinator has asked for an introduction
  bool over() const { return over_; }
  bool leased(double now, double seconds) const { return !over_ && now - confirmed_ < seconds; }
  static constexpr double kUnledSeconds = 5;
  bool unled(double now) const { return !is_out() && unled_seconds(now) >= kUnledSeconds; }
  double unled_seconds(double now) const { return now - reached_; }  // seconds since a coordinator last answered
  bool knows_end() const { return knows_end_; }
  // Returns whether a coordinator told this member that it is fenced, or that the run is over.
  bool is_out() const { return told_ || knows_end_; }
  int64_t term() const { return term_; }

 private:
  void end();

  const ClientOptions& options_;
  const std::string name_;
  std::string incarnation_;
  int fenced_joins_ = 0;  // incarnations that were fenced before they knew that they had joined
  MemberId id_;
  Signature certificate_{};
  std::string proof_;  // see JoinReply
  MemberReport report_;
  bool introducing_ = false, over_ = false;
  int64_t term_ = 0;  // the newest term of a coordinator that has answered; answers of older ones are refused
  Generation known_view_;
  std::string requests_key_;
  std::vector<ControlRequest> requests_;
  bool knows_end_ = false;  // true: this member has received that the run is over
  double reached_ = 0;      // when a coordinator last answered
  bool told_ = false;       // true: a coordinator has told this member that it is fenced
  // A coordinator has answered that this member is in the newest view; this is when the newest such call was sent.
  double confirmed_ = -std::numeric_limits<double>::infinity();
};

}  // namespace sinew::cluster
