// The client through which a member talks to the coordinator: it joins the run, sends heartbeats and receives views.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/key_pair.h"
#include "cluster/cluster_state.h"
#include "cluster/control_request.h"
#include "cluster/standby.h"

namespace sinew::cluster {

// What a member reports about itself. The next heartbeat carries it. The Client owns it; Client::report changes it.
struct MemberReport {
  Member::Phase phase = Member::Phase::waiting;
  // The view by which the member acts. When a coordinator has died, its successor learns the group's view from this.
  std::optional<View> view;
  int64_t step = 0, durable_step = -1;
  double speed = 0;
  std::string facts;
  std::vector<std::pair<MemberId, std::string>> lost;  // members to which the link broke, with the reason
  // computing members that computed a wrong result, with how that is known; the coordinator fences them
  std::vector<std::pair<MemberId, std::string>> wrong;
  std::optional<int64_t> finished;  // set by the leader: the run's exit code
  int64_t taken_requests = 0;       // set by the leader: the highest number in its control log
  // Why the group's work since its newest checkpoint cannot be trusted; empty if it can be trusted. If this is set, the
  // coordinator fences all members of the view, and the next members begin from that checkpoint.
  std::string dissolve;
};

// The client calls these on a thread of its own, one at a time. They must return soon.
struct ClientEvents {
  std::function<void(const View&)> on_view = nullptr;  // every newer view, once
  // this incarnation of the member has ended; the process must join again as another member
  std::function<void(const std::string& why)> on_fenced = nullptr;
  // all requests that the leader has not taken
  std::function<void(const std::vector<ControlRequest>&)> on_requests = nullptr;
  std::function<void(int64_t exit_code)> on_finished = nullptr;  // the leader ended the run
};

struct ClientOptions {
  // Called for every new connection, because the successor of a dead coordinator may listen at another address.
  std::function<std::string()> url = nullptr;
  std::string secret;
  std::string address, host;
  int64_t pid = 0;
  Identity identity;
  std::optional<PublicKey> key;  // the public key of the member's links; the coordinator certifies it
  double pulse_seconds = 0.25;   // the longest time between two heartbeats
  double patience_seconds = 60;  // the client calls on_fenced after this time without a coordinator
  // If set, this member may be elected coordinator. Once it has joined, it waits kStandbyPatienceSeconds instead of
  // patience_seconds: a network file system keeps the lock of a dead machine for 90 s.
  std::optional<StandbyOptions> standby;
};
inline constexpr double kStandbyPatienceSeconds = 110;

// A member's connection to the coordinator, on two threads of its own. It sends a heartbeat at every change and every
// pulse, and receives views by a long poll. If the coordinator does not answer, the client tries again and reports
// everything to the coordinator that replaces the dead one. Events may come before the constructor returns, and may
// call report(). No event comes after the destructor has returned; the destructor first sends what is left to report,
// within two seconds. If this process leads the run as an elected coordinator, and the run is over, the destructor also
// waits until the other members know it, at most ten seconds.
class Client {
 public:
  // Joins the run. Throws Error when the coordinator refuses this member (the message names the difference) or cannot
  // be reached in time.
  Client(const ClientOptions& options, ClientEvents events, Clock& clock);
  ~Client();
  MemberId id() const;
  const Signature& certificate() const;  // the certificate of ClientOptions::key
  // Any thread. Changes what the heartbeats report. The client sends a heartbeat at once if other members wait for the
  // change.
  void report(const std::function<void(MemberReport&)>& change);
  // Returns whether the coordinator confirmed within the last `seconds` that this member is in the newest view. A
  // member has effects outside the group (publishing or deleting checkpoints, writing lines) only while it holds this
  // lease.
  bool leased(double seconds = 1.0) const;
  // Returns whether no coordinator has answered for some seconds, and none has told this member that it is fenced or
  // that the run is over. If so, as far as this member knows, the group has not continued without it.
  bool unled() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sinew::cluster
