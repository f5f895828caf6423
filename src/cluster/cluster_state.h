// Defines what the coordinator knows about the members, and decides on the next view. All functions are pure and get
// the time as an argument.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "cluster/view.h"

namespace sinew::cluster {

// The properties that a joiner must have in common with the group, because they decide the numbers that the joiner
// would compute. The coordinator refuses a joiner that differs, and names the difference.
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
  bool guest = false;  // it joined by a token
  // caught_up: a joiner that wants to compute. finished: this member ended the run.
  enum class Phase { waiting, joining, caught_up, computing, leaving, finished };
  Phase phase = Phase::waiting;
  Generation view;  // the newest view by which the member acts; 0: it has no view yet
  int64_t step = 0, durable_step = -1;
  double speed = 0;   // shards a second of pure computing, smoothed; 0: not measured yet
  std::string facts;  // a JSON object for `sinew ps` (progress and the like), filled by the leader; may be empty
  double heard = 0;   // when the newest heartbeat came, in monotonic seconds of the coordinator
  double since = 0;   // when the member joined, or first reported to this coordinator
  std::string lost;   // why the member is known to be gone; empty if it is not known to be gone
  // Another member reports that its link to this member broke. When two members report each other, the coordinator
  // fences only one of them.
  struct LossReport {
    double at = 0;
    std::string why;
  };
  std::map<MemberId, LossReport> loss_reports;  // the key is the member that reports the loss
};

struct ClusterOptions {
  int64_t minimum = 1;           // computing members needed to begin
  int64_t wanted = 1;            // workers that the supervisor keeps
  double silence_seconds = 1.0;  // the coordinator fences a member that sends no heartbeat for this time
  double gather_seconds = 3.0;   // how long a first view waits for `wanted` members before it begins with `minimum`
  // after it replaced a dead coordinator, how long a coordinator listens to the members before it decides
  double settle_seconds = 1.2;
  double share_seconds = 2.0;  // the least time between two changes of shares
  double share_change = 0.15;  // shares change only if a member's part of the work changes by more than this ratio
  // How long the coordinator keeps the report of a broken link before it acts on the report. It acts at once if most
  // computing members report the same. Within this time, other reports and a heartbeat of the reported member can
  // arrive. The time is longer than a pulse, so a living member has sent a heartbeat by then.
  double report_seconds = 0.4;
};

struct ClusterState {
  double began = 0;                    // when this coordinator began to listen
  std::map<MemberId, Member> members;  // every member that has sent a heartbeat or joined, and is not fenced
  std::optional<View> view;            // the newest known view: made here, or reported by a member
  std::optional<int64_t> finished;     // the run's exit code, once the leader reported it
  double shares_changed = 0;           // when the members' shares of the work last changed
  double view_made = -1e9;   // when this coordinator made the view; long ago if an earlier coordinator made it
  double listens_until = 0;  // before this time, a coordinator that replaced a dead one makes no decision
  double awake = 0;          // until this time this coordinator did not run, so silence before it does not count
  Generation at_least;       // the next generation is above this one
  GoingBack going_back;      // every view carries it
};

// The reason of a decision that keeps the view.
inline constexpr char kNothingChanged[] = "nothing changed";

struct Decision {
  std::optional<View> view;                              // to be published; nullopt: the view stays as it is
  std::vector<std::pair<MemberId, std::string>> fenced;  // members to fence, each with the reason
  std::string why;                                       // the reason of the view, or why there is no new view
};

// Returns the next view if something changed. The rules are:
// - Members that are lost or silent are fenced.
// - A leaving member first gets share 0 and hands its work over. It is fenced once another member computes by that
//   view.
// - A waiting member enters the view as a joiner. Its donor is a computing member that stays. The leader is the donor
//   only if there is no other such member. Among the others, the donor is the one with the fewest joiners.
// - A joiner that has caught up computes.
// - Shares follow the measured speeds.
// - The leader stays as long as it computes. The next one is the computing member with the lowest id of those that
// joined
//   with the run's secret: the others, the guests, have no access to the run's files, and may lie. If only guests have
//   the state, one of them leads. It is fenced as soon as another member computes.
// - If the link between a guest and another member breaks and both live, the guest is fenced.
// - If no member that has the state is left, the waiting members begin a fresh view: as soon as there are `wanted` of
//   them, or with `minimum` of them after gather_seconds. Guests wait until a member with the run's secret has begun:
//   they have none of the run's checkpoints, so they would begin at step 0, and they may lie about the state.
// The view's generation is one more than the highest known one.
Decision next_view(double now, const ClusterState& state, const ClusterOptions& options);

// Returns why this member must not join, or an empty string if it may. Compares its identity with that of a known
// member. A guest that does not have the state yet counts only if there is no other member, and only for guests: else
// the first guest would decide who may be in the run.
std::string refusal(const Member& joiner, const ClusterState& state);
// If this member has joined with the run's secret, marks those guests as lost that do not have the state and whose
// identity is another one.
void lose_other_guests(const Member& joined, ClusterState& state);

}  // namespace sinew::cluster
