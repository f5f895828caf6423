// Membership of a run's group: who belongs to it, and which member computes which part of a step.
//
// group/ (a member's side), cli/ and supervise/ (the coordinator, ps, scale) use this room. Every decision is a pure
// function of the time, the state and the options, and returns its reason as a sentence. The coordinator is a thin
// shell around these functions. Its state is soft: the members report all of it again to a successor, so the death of
// a coordinator delays the next change of the view and has no other effect.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "cluster/coordinator_client.h"
#include "cluster/coordinator_info.h"
#include "http/http.h"

namespace sinew::cluster {

// ---- views ---------------------------------------------------------------------------------------------------------

// One member's entry in a view. A joining member computes nothing yet. The other members send it the reduced results of
// all collectives from this view's first one on, and its donor sends it a snapshot of the state. When it has caught up,
// it asks to compute.
struct ViewMember {
  MemberId id;
  std::string address;  // where the member's links listen
  double share = 1;     // of the work, relative to the other shares; 0: no work
  bool joining = false;
  MemberId donor;  // only of a joining member
  bool operator==(const ViewMember&) const = default;
};

// The group as all its members see it. The leader is the computing member with the lowest id. It writes the run's files
// and decides what enters the control log.
struct View {
  Generation generation;
  std::vector<ViewMember> members;  // by id, ascending
  // No member of this view has the state of an earlier one: all begin alike, from the newest checkpoint or from step 0.
  bool fresh = false;
  std::string why;  // a sentence: what changed, and for what reason
  bool operator==(const View&) const = default;

  const ViewMember* find(MemberId id) const;  // null: not a member
  std::vector<MemberId> computing() const;    // ascending
  std::optional<MemberId> leader() const;     // nullopt: no member computes
};
std::string to_json(const View& view);
std::optional<View> view_of_json(const std::string& json);

// ---- who computes what: pure functions that give the same result on every member -----------------------------------

// Returns the owner of every shard of a collective. `held[s]` names the member that already has the result of shard s,
// if one has it; a computing member keeps the shards that it holds. The other shards go to the members in proportion to
// their shares, in contiguous runs. A cut between two runs lies at the edge of an aligned subtree where the balance
// allows it. Every shard has exactly one owner. A member with share 0 gets no shard unless all shares are 0.
std::vector<MemberId> plan_shards(const View& view, int64_t shards,
                                  const std::vector<std::optional<MemberId>>& held = {});

// A slice [begin, end) of a flat row of n floats, and the member that adds up the tree for these floats. The slices
// are in order and cover the row without holes. Boundaries are multiples of 1024 floats. Empty slices are left out.
struct Slice {
  MemberId owner;
  int64_t begin = 0, end = 0;
  bool operator==(const Slice&) const = default;
};
std::vector<Slice> plan_slices(const View& view, int64_t n);

// ---- what the coordinator knows and decides ------------------------------------------------------------------------

// What a joiner must have in common with the group, because it decides the numbers the joiner would compute. The
// coordinator refuses a joiner that differs and says in what.
struct Identity {
  std::string job;      // digest of the resolved job, of the data and of what a model file holds
  std::string machine;  // CPU model and library versions, in words
  std::string probe;    // digest of one shard's gradients at step 0
  bool operator==(const Identity&) const = default;
};

// What the coordinator knows about a member. A heartbeat brings most of it; the newest heartbeat counts.
struct Member {
  MemberId id;
  std::string address, host;
  int64_t pid = 0;
  Identity identity;
  // caught_up: a joiner that wants to compute. finished: this member ended the run.
  enum class Phase { waiting, joining, caught_up, computing, leaving, finished };
  Phase phase = Phase::waiting;
  Generation view;  // the newest view the member acts by; 0: none
  int64_t step = 0, durable_step = -1;
  double speed = 0;   // shards a second of pure computing, smoothed; 0: not measured yet
  std::string facts;  // a JSON object for `sinew ps` (progress and the like), filled by the leader; may be empty
  double heard = 0;   // when the newest heartbeat came, in monotonic seconds of the coordinator
  double since = 0;   // when this coordinator first heard of the member
  std::string lost;   // why the member is known to be gone; empty: it is not
  // Another member reports that its link to this member broke. When two members report each other, only one goes.
  struct LossReport {
    double at = 0;
    std::string why;
  };
  std::map<MemberId, LossReport> loss_reports;  // by reporter
};

struct ClusterOptions {
  int64_t minimum = 1;           // computing members needed to begin
  int64_t wanted = 1;            // workers that the supervisor keeps
  double silence_seconds = 1.0;  // the coordinator fences a member that sends no heartbeat for so long
  double gather_seconds = 3.0;   // how long a first view waits for `wanted` members before it begins with `minimum`
  double settle_seconds = 1.2;   // how long a successor listens to the members before it decides
  double share_seconds = 2.0;    // the least time between two changes of shares
  double share_change = 0.15;    // shares change only if a member's part of the work changes by more than this ratio
  // How long the coordinator keeps the report of a broken link before it acts on it, unless most computing members
  // report the same. Other reports and a heartbeat of the reported member can come in this time. It is longer than a
  // pulse, so a member that lives has sent a heartbeat by then.
  double report_seconds = 0.4;
};

struct ClusterState {
  double began = 0;                    // when this coordinator began to listen
  std::map<MemberId, Member> members;  // every member that was heard and not fenced
  std::optional<View> view;            // the newest known: made here, or reported by a member
  std::optional<int64_t> finished;     // the run's exit code, once the leader reported it
  double shares_changed = 0;           // when shares last changed
  double view_made = -1e9;             // when this coordinator made the view; long ago: a predecessor made it
  double listens_until = 0;            // a successor decides nothing before
  double awake = 0;     // the coordinator itself did not run until then; silence before that time does not count
  Generation at_least;  // the next generation is above this one
};

struct Decision {
  std::optional<View> view;                              // to be published
  std::vector<std::pair<MemberId, std::string>> fenced;  // members that go, each with the reason
  std::string why;                                       // of the view, or why there is no new view
};

// Returns the next view, if something changed, under these rules.
// - Members that are lost or silent go.
// - A leaving member first gets share 0 and hands its work over. It goes once another member computes by that view.
// - A waiting member enters the view as a joiner. Its donor is a computing member that stays: not the leader if there
// is
//   another, and of the others the one with the fewest joiners.
// - A joiner that has caught up computes.
// - Shares follow the measured speeds.
// - If no member that has the state is left, the waiting members begin a fresh view: as soon as `wanted` of them are
//   there, or with `minimum` of them after gather_seconds.
// The view's generation is one more than the highest known one.
Decision next_view(double now, const ClusterState& state, const ClusterOptions& options);

// Returns why this member may not join; empty: it may. Compares it with a member that is known already.
std::string refusal(const Member& joiner, const ClusterState& state);

// ---- the coordinator over HTTP (docs/formats/coordinator.md) -------------------------------------------------------

// What a person asks the run to do. When the leader takes the request, it becomes an entry of the control log.
struct ControlRequest {
  int64_t number = 0;
  std::string kind;  // stop | checkpoint | evaluate | learning_rate | batch_size
  double value = 0;
  std::string reason;
  bool operator==(const ControlRequest&) const = default;
};

struct CoordinatorOptions {
  ClusterOptions cluster;
  std::string secret;  // bearer token of every call but /healthz
  bool tls = false;    // HTTPS; a client trusts the server if and only if both have the secret
  std::string run_directory, job;
  std::string listen = "127.0.0.1";
  uint16_t port = 0;
  Generation at_least;  // generations are above this one (a successor must not repeat its predecessor's)
  MemberId first_id;    // ids are above this one
  // The newest view that a predecessor made, where it is known: exactly the members that compute by it have the state.
  // Without it a successor believes the newest view that a member reports. That member may be one that the group went
  // on without, while the members that have the state died together with the predecessor.
  std::optional<View> last_view;
  std::function<void(const View& view)> on_view = nullptr;     // every new view, before a member receives it
  std::function<void(const std::string& line)> log = nullptr;  // every decision as a sentence
};

// Serves HTTP until it is destroyed. Routes: POST /v2/join, /v2/heartbeat, /v2/lost, /v2/scale, /v2/control; GET
// /v2/updates (long poll), /v2/status, /healthz. A successor needs at_least and first_id beyond all numbers that its
// predecessors can have given (a million for each is enough). These two also tell it that there are members to listen
// to before it decides.
class Coordinator {
 public:
  Coordinator(const CoordinatorOptions& options, Clock& clock);
  ~Coordinator();
  std::string url() const;
  void tick();  // makes the decisions that the passing of time requires; call it about every 50 ms
  // The run's exit code, once the leader reported it and every member has received it or is silent.
  std::optional<int64_t> over() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- a member's client ----------------------------------------------------------------------------------------------

// What a member reports about itself. The next heartbeat carries it. The Client owns it; Client::report changes it.
struct MemberReport {
  Member::Phase phase = Member::Phase::waiting;
  std::optional<View> view;  // the view the member acts by; a successor learns the group's view from it
  int64_t step = 0, durable_step = -1;
  double speed = 0;
  std::string facts;
  std::vector<std::pair<MemberId, std::string>> lost;  // members the link to which broke, with the reason
  std::optional<int64_t> finished;                     // from the leader: the run's exit code
  int64_t taken_requests = 0;                          // from the leader: highest number it put into the control log
};

// The client calls these on a thread of its own, one at a time. They must return soon.
struct ClientEvents {
  std::function<void(const View&)> on_view = nullptr;               // every newer view, once
  std::function<void(const std::string& why)> on_fenced = nullptr;  // this incarnation has ended: join again as another
  std::function<void(const std::vector<ControlRequest>&)> on_requests = nullptr;  // all that the leader has not taken
  std::function<void(int64_t exit_code)> on_finished = nullptr;                   // the leader ended the run
};

struct ClientOptions {
  std::function<std::string()> url = nullptr;  // called for every new connection: a successor may listen elsewhere
  std::string secret;
  std::string address, host;
  int64_t pid = 0;
  Identity identity;
  double pulse_seconds = 0.25;   // the longest time between two heartbeats
  double patience_seconds = 60;  // without a coordinator for so long, the client calls on_fenced
};

// A member's connection to the coordinator, on two threads of its own. It sends a heartbeat at every change and every
// pulse, and receives views by a long poll. If the coordinator does not answer, the client tries again and reports
// everything to the successor. Events may come before the constructor returns, and may call report(). No event comes
// after the destructor has returned; the destructor first sends what is left to report, within two seconds.
class Client {
 public:
  // Joins the run. Throws Error when the coordinator refuses this member (the message names the difference) or cannot
  // be reached in time.
  Client(const ClientOptions& options, ClientEvents events, Clock& clock);
  ~Client();
  MemberId id() const;
  // Any thread. Changes what the heartbeats report. The client sends a heartbeat at once if other members wait for the
  // change.
  void report(const std::function<void(MemberReport&)>& change);
  // Whether the coordinator confirmed within `seconds` that this member is in the newest view. A member does what is
  // visible outside the group (publishing or deleting checkpoints, writing lines) only while it holds this lease.
  bool leased(double seconds = 1.0) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Makes one call to a coordinator, for ps, scale, control and chaos, and returns the body of the answer. With https://
// it trusts only a server that has the secret. Throws Error with what the coordinator answered, or
// COORDINATOR_UNREACHABLE.
std::string call(const std::string& url, const std::string& secret, const std::string& method, const std::string& path,
                 const std::string& body, double timeout_seconds = 5);

}  // namespace sinew::cluster
