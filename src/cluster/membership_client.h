// A member's side of the membership with the coordinator, without network, threads or a clock of its own: what it says,
// and what the answers mean. Client puts HTTP and threads around it; a simulation puts its own.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace sinew::cluster {

// What a member is to do because of an answer, in this order; nothing else is left of the answer.
struct Heard {
  bool understood = false;                 // else: as if no answer had come
  bool speak = false;                      // the coordinator waits for a heartbeat
  std::optional<std::string> fenced = {};  // this life is over; nothing comes after it
  std::optional<View> view = {};
  std::optional<std::vector<ControlRequest>> requests = {};
  std::optional<int64_t> finished = {};
};

class MembershipClient {
 public:
  // `life`: a name for this life that no other has.
  MembershipClient(const ClientOptions& options, std::string incarnation)
      : options_(options), incarnation_(std::move(incarnation)) {}

  // ---- joining
  std::string join_request() const;
  // The answer to it. False: to be tried again. Throws Error when refused.
  bool joined(const http::Response& response, double now);
  MemberId id() const { return id_; }

  // ---- speaking
  std::string heartbeat() const;
  std::string updates_target() const;  // path and query of the poll
  // True: others wait for what changed; else it travels with the next pulse.
  bool report(const std::function<void(MemberReport&)>& change);

  // ---- listening
  Heard hear(const http::Response& response, double sent, double now);
  // A call failed. Why this life is over, if there was no coordinator for too long.
  std::optional<std::string> failed(const std::string& why, double now);
  bool introducing() const { return introducing_; }  // the coordinator asked who this is
  bool over() const { return over_; }
  bool leased(double now, double seconds) const { return !over_ && now - confirmed_ < seconds; }

 private:
  void end();

  const ClientOptions& options_;
  const std::string incarnation_;
  MemberId id_;
  MemberReport report_;
  bool introducing_ = false, over_ = false;
  Generation known_view_;
  std::string requests_key_;
  std::vector<ControlRequest> requests_;
  bool knows_end_ = false;  // and the coordinator was not told that yet, or was: it may be told again
  double reached_ = 0;      // when a coordinator last answered
  double confirmed_ = -std::numeric_limits<double>::infinity();  // when that was asked which it confirmed
};

}  // namespace sinew::cluster
