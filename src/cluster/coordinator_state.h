// Holds what the coordinator knows, and answers calls. It has no network, no threads and no clock of its own: every
// call passes the time as an argument. Coordinator puts HTTP and a mutex around this class; a simulation puts its own
// network around it.
#pragma once

#include <deque>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/coordinator.h"
#include "cluster/coordinator_status.h"
#include "cluster/join_token.h"
#include "cluster/messages.h"

namespace sinew::cluster {

// The answer to a call.
struct Reply {
  int status = 200;  // the HTTP status
  std::string body;
};
Reply refuse(int status, ErrorCode code, const std::string& error, const std::string& hint);

// Who makes a call: the holder of a join token, or somebody who knows the run's secret.
//
// A member that joined by a token, a guest, shares the work, and nothing else: it may lie, and it has no access to the
// run's files. It speaks only for the id that it was given (membership_proof). It leads only while no other member has
// the state (cluster_state.h). It neither begins nor ends the run.
// Its reports `wrong` and `dissolve` have no effect while another member has the state: that one reports the same if it
// is true.
struct Caller {
  std::optional<JoinToken> token = std::nullopt;
  std::string token_id() const { return token ? token->id : ""; }
};

// A member's long poll for updates. It names what the member has received already.
struct UpdatesPoll {
  MemberId id;
  std::string incarnation;
  Generation known_view;
  std::string requests_key;
  bool knows_end = false;
  int64_t term = 0;
  Caller caller = {};
};
std::expected<UpdatesPoll, Reply> poll_of(const std::map<std::string, std::string>& query);

struct Moment {
  double now = 0;   // monotonic seconds
  double wall = 0;  // seconds since 1970, for output to users
};

class CoordinatorState {
 public:
  CoordinatorState(const CoordinatorOptions& options, Moment at);

  void tick(Moment at);
  void confirm(double now) { confirmed_ = now; }  // see Coordinator::confirm
  // Records that a coordinator of a newer term has taken over. `by` names the source of this news, for the log.
  void supersede(int64_t term, const std::string& by, Moment at);
  std::optional<int64_t> superseded_by() const { return superseded_by_; }
  // Returns nullopt if this coordinator leads, as far as it can know now. All calls but status() must ask this before.
  std::optional<Reply> refuse_without_lead(double now) const;
  // Returns nullopt if the coordinator takes calls of this caller. Calls of a member whose token is no longer valid
  // have another answer: heartbeat() and updates() tell the member that it is fenced.
  std::optional<Reply> refuse_caller(const Caller& caller, Moment at) const;
  // Returns the answer to a call of this path if the caller's token is no longer valid. It does not depend on the body.
  std::optional<Reply> refuse_unread(const std::string& path, const Caller& caller, Moment at) const;
  Reply join(const std::string& body, Moment at, const Caller& caller = {});
  Reply heartbeat(const std::string& body, Moment at, const Caller& caller = {});
  Reply lost(const std::string& body, Moment at);
  Reply scale(const std::string& body, Moment at);
  Reply control(const std::string& body, Moment at);
  Reply revoke(const std::string& body, Moment at);  // the caller has recorded the revocation (join_token.h)
  // The holder of a token learns the processes and machines of no members but its own, and not the log, which names
  // them, too.
  Reply status(Moment at, const std::optional<Caller>& caller = std::nullopt) const;
  // Returns nullopt if the member has received everything.
  std::optional<Reply> updates(const UpdatesPoll& poll, Moment at) const;
  void hear(const UpdatesPoll& poll, Moment at);  // call it once for each poll, before updates()
  Reply no_updates(const UpdatesPoll& poll, Moment at) const;
  std::optional<int64_t> over(double now) const;
  // Returns the time at which the next tick must come, because time alone may then change the decision. Returns nullopt
  // if regular ticks are enough.
  std::optional<double> due() const { return due_; }

 private:
  struct Incarnation {
    std::string name;        // a name that the member chose; no other member has it
    bool knows_end = false;  // true: the member has received that the run is over
    Caller caller;           // who joined or introduced the member; nobody else may speak for it
    // The key that the member's join certified. No other key gets a certificate for its id, and a member that this
    // coordinator knows from an introduction gets none any more.
    std::optional<PublicKey> key = std::nullopt;
  };
  struct LogLine {
    double wall = 0;
    std::string text;
  };
  // The time from the loss of a computing member until all computing members act by the next view.
  struct Recovery {
    double began = 0;
    Generation generation;  // the generation of the first view after the loss
    std::string why;
    std::optional<double> seconds;  // nullopt: not over
  };

  bool leads(double now) const { return !refuse_without_lead(now); }
  Reply fenced_reply(const std::string& why) const;
  Reply introduce_reply() const;
  void hear_term(int64_t term, MemberId from, const Caller& caller, Moment at);
  Reply admitted(MemberId id, const JoinRequest& request, const Caller& caller) const;
  bool proves_its_id(const Heartbeat& heartbeat, const Caller& caller) const;
  void notice_pause(Moment at);  // every call of the public interface begins with this
  void decide(Moment at);
  void lose_the_dissolved();
  void lose_the_unauthorized(Moment at);
  std::optional<TokenTrouble> trouble_of(const Caller& caller, Moment at) const;
  void log(Moment at, const std::string& text);
  // Returns the answer to a sender that is not a member or must introduce itself first; nullopt if it is a known
  // member.
  std::optional<Reply> admit(const Heartbeat& heartbeat, Moment at, const Caller& caller);
  std::optional<Reply> introduce(const Heartbeat& heartbeat, Moment at, const Caller& caller);
  Generation newest_view() const;  // the newest generation of all views that are known here
  void learn_view(const View& view, Moment at);
  void learn_requests(const std::vector<ControlRequest>& requests);
  void apply(const Heartbeat& heartbeat, Moment at, const Caller& caller);
  bool only_guests_compute(double now) const;
  void refuse_the_end(const MemberReport& report, Moment at, Member& guest);
  void dissolve(MemberId by, const std::string& why, Moment at);
  void lose_the_wrong(MemberId by, MemberId peer, const std::string& why, Moment at);
  void offer_unsaved_requests(Moment at);
  void update_recovery(Moment at);
  void fence(const std::string& incarnation, const std::string& why);
  bool listening(double now) const { return now < state_.listens_until; }
  HeartbeatReply reply_for(MemberId id, Generation known_view, const std::string& known_requests, bool knows_end,
                           double now) const;
  std::string requests_key() const;
  MemberStatus status_of(const Member& member, double now) const;

  CoordinatorOptions options_;
  ClusterState state_;
  std::set<std::string> revoked_;                 // ids of join tokens
  std::map<MemberId, Incarnation> incarnations_;  // for each member in state_
  // Maps the name of a fenced incarnation to the reason. The member receives the reason with its next call. The oldest
  // entries are dropped.
  std::map<std::string, std::string> fenced_;
  std::deque<std::string> fenced_order_;  // oldest first
  std::vector<ControlRequest> requests_;  // requests that the leader has not taken yet, ordered by number
  // The requests that a leader has taken and that no checkpoint may have yet, oldest first. `step`: the leader's step
  // when it said so, at which it had applied the request or was about to.
  struct TakenRequest {
    ControlRequest request;
    int64_t step = 0;
  };
  std::deque<TakenRequest> unsaved_requests_;
  int64_t last_request_ = 0, taken_ = 0;
  int64_t next_id_ = 1;
  std::string dissolved_;  // why all members of the view must go; empty: they need not
  int64_t durable_ = -1;   // the newest durable checkpoint of which a member told this coordinator
  std::deque<LogLine> log_;
  std::optional<Recovery> recovery_;
  std::optional<double> due_;
  double last_call_ = 0, confirmed_ = 0;
  std::optional<int64_t> superseded_by_;
  Generation made_;       // the newest view that this coordinator made
  Generation abandoned_;  // no member that has the state of a view up to this generation is left
  std::string why_;       // reason of the newest decision
};

}  // namespace sinew::cluster
