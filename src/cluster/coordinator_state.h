// What the coordinator knows and answers, without network, threads or a clock of its own: every call says what time it
// is. Coordinator puts HTTP and a mutex around it.
#pragma once

#include <deque>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/messages.h"

namespace sinew::cluster {

struct Reply {
  int status = 200;
  std::string body;
};
Reply refuse(int status, const std::string& error, const std::string& hint);

// A member that waits for news.
struct Poll {
  MemberId id;
  std::string incarnation;
  Generation known_view;
  std::string requests_key;
  bool knows_end = false;
};
std::expected<Poll, Reply> poll_of(const std::map<std::string, std::string>& query);

struct Moment {
  double now = 0;   // monotonic seconds
  double wall = 0;  // for what people read
};

class CoordinatorState {
 public:
  CoordinatorState(const CoordinatorOptions& options, Moment at);

  void tick(Moment at);
  Reply join(const std::string& body, Moment at);
  Reply heartbeat(const std::string& body, Moment at);
  Reply lost(const std::string& body, Moment at);
  Reply scale(const std::string& body, Moment at);
  Reply control(const std::string& body, Moment at);
  Reply status(Moment at) const;
  // The answer, if there is something this member does not have.
  std::optional<Reply> updates(const Poll& poll, Moment at) const;
  Reply no_updates(const Poll& poll, Moment at) const;
  std::optional<int64_t> over(double now) const;
  // When time alone may change the decision, sooner than ticks come; nothing: ticks are enough.
  std::optional<double> due() const { return due_; }

 private:
  struct Incarnation {
    std::string incarnation;
    bool knows_end = false;
  };
  struct Line {
    double wall = 0;
    std::string text;
  };
  struct Recovery {
    double began = 0;
    Generation generation;
    std::string why;
    std::optional<double> seconds;
  };

  void notice(Moment at);  // at every call: was this coordinator itself not running?
  void decide(Moment at);
  void say(Moment at, const std::string& text);
  std::optional<Reply> admit(const Heartbeat& heartbeat, Moment at);  // an answer: it is not (yet) a member
  std::optional<Reply> introduce(const Heartbeat& heartbeat, Moment at);
  void learn_view(const View& view, Moment at);
  void learn_requests(const std::vector<ControlRequest>& requests);
  void take_in(const Heartbeat& heartbeat, Moment at);
  void look_at_recovery(Moment at);
  void fence(const std::string& incarnation, const std::string& why);
  bool listening(double now) const { return now < state_.listens_until; }
  HeartbeatReply reply_for(MemberId id, Generation have, const std::string& key, bool knows_end, double now) const;
  std::string requests_key() const;
  Json member_json(const Member& member, double now) const;

  CoordinatorOptions options_;
  ClusterState state_;
  std::map<MemberId, Incarnation> incarnations_;  // of the members of state_
  std::map<std::string, std::string> fenced_;     // life -> why; they hear it when they speak again
  std::deque<std::string> fenced_order_;          // oldest first: how many are remembered has a bound
  std::vector<ControlRequest> requests_;          // not taken yet, by number
  int64_t last_request_ = 0, taken_ = 0;
  int64_t next_id_ = 1;
  std::deque<Line> lines_;
  std::optional<Recovery> recovery_;
  std::optional<double> due_;
  double last_call_ = 0;
  Generation given_;   // newest view of this coordinator's own
  Generation buried_;  // views up to here are known to have nobody left
  std::string why_;    // of the newest decision
};

}  // namespace sinew::cluster
