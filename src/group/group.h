// One member's part in reducing collectives together with the other members, even if some of them die.
//
// distribute/ (training) and its tests use this code. It knows no tensors: the result of a shard is rows of floats and
// a few small bytes. A collective is one reduction over S shards: the gradients of a training step, or a pass of
// evaluation. Any member can compute any shard. Each member adds its shards to sums of maximal aligned subtrees and
// sends each slice of these sums to the slice's owner. The owner completes the fixed tree and sends its slice of the
// reduced result to all members. Therefore the reduced result has the same bits as the result of a single process
// (base/tree.h). The bits depend neither on which member computed which shard nor on how often the view changed.
//
// Healing: a member keeps the results of its shards until the collective is over. When the view changes, every member
// reports what it has (ViewChangeReport). Only the shards whose result no member has are assigned again, and all sums
// are sent again. No shard is computed twice while a member has its result. The members are at most one collective
// apart. Each keeps the reduced results of the last two collectives, so that it can send them to a member that lacks
// them. Nothing is rolled back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/audit.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/mark.h"
#include "base/purpose.h"
#include "checkpoint/checkpoint.h"
#include "cluster/cluster.h"
#include "link/link.h"

namespace sinew::group {

// This incarnation of the member has ended: it left the view, fell too far behind, or is ahead of the group. The
// process must join again as a new member.
struct Fenced : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::optional<int64_t> finished = std::nullopt;  // set by Member's constructor if the run is over: its exit code
};

// Members that trained together have different states. All members of the group find it out at the same collective. The
// work of the group since the states were last equal may be wrong, whichever of them is right.
struct MembersDiffer : Error {
  // `outvoted` are the members whose state differs from that of most members; it is empty if no state is that of more
  // than half.
  MembersDiffer(const std::string& what, std::vector<MemberId> outvoted);
  std::vector<MemberId> outvoted;
};

// The state with which a member began.
struct Origin {
  int64_t step = 0;
  uint64_t digest = 0;
  bool operator==(const Origin&) const = default;
};

// The result of a shard. The group may read the rows until the collective after the next begins, or until it drops
// `keep`.
struct Leaf {
  // One pointer for each row of the collective, to floats of that row's length; null if the row is absent. An empty
  // list means that all rows are absent.
  std::vector<const float*> rows;
  std::string small;  // merged along the tree by GroupOptions::merge
  std::shared_ptr<const void> keep;
};

struct MemberMark {
  MemberId member;
  Mark mark;
  bool operator==(const MemberMark&) const = default;
};

// The reduced result of a collective, without its rows of floats: Group::finish writes these to the caller's memory.
struct Reduced {
  std::vector<bool> present;  // for each row: true if at least one shard had the row
  bool any = false;           // true if at least one shard was not absent; otherwise `small` is empty
  std::string small;          // the small bytes of all shards, merged
  // the control message that the leader sent with this collective; the same on every member
  std::string control_message;
  std::vector<MemberMark> marks;  // the marks of the computing members that gave one, ascending by member
  bool compare = false;           // a member asked for a comparison of the whole states (Group::ask_to_compare)
  // Sentences about members that computed a wrong result in this collective and were fenced for it. Each member knows
  // them by itself; the leader sends none.
  std::vector<std::string> wrong;
};

struct GroupOptions {
  // Merges the small bytes of the left and the right child of a tree node. Called on any thread.
  std::function<std::string(std::string_view left, std::string_view right)> merge = nullptr;
  // How long a collective may make no progress: no frame, no view and no result comes. The limit is the larger of this
  // value and 40 times the usual duration of a collective. In the first collective it is ten times this value. After
  // the limit, the member calls on_lost for the members it waits for. After twice the limit, the member fences itself.
  // If a worker hangs, the supervisor ends it earlier.
  double patience_seconds = 120;
  // Reports a member with which the group cannot continue, and the reason. The coordinator decides about it. Called on
  // any thread.
  std::function<void(MemberId, const std::string& why)> on_lost = nullptr;
  // Reports a member that computed a wrong result, and how that is known. The coordinator fences it. Called on any
  // thread.
  std::function<void(MemberId, const std::string& why)> on_wrong = nullptr;
  // The number of floats of a piece; slices are sent and summed piece by piece. It must be equal on all members.
  int64_t piece_floats = int64_t{1} << 18;
  // Limits on memory. The first three are at least a few reduced results, however large the model (group_bounds.cpp).
  size_t joiner_bytes = size_t{2} << 30;   // a joiner that has more bytes of results to replay fences itself
  size_t early_bytes = size_t{256} << 20;  // bytes of frames kept for views that have not reached this member yet
  // Bytes of results that may be queued for a joiner, in addition to handover_bytes. A joiner with more is reported as
  // lost.
  size_t queue_bytes = size_t{256} << 20;
  // bytes of older results kept for joiners, in addition to the last two results
  size_t handover_bytes = size_t{256} << 20;
};

struct Counts {               // what this member has done since it began
  int64_t computed = 0;       // shards delivered
  int64_t audited = 0;        // shards of other members that it computed again
  int64_t judged = 0;         // how often it judged the audit of a shard
  int64_t collectives = 0;    // collectives finished
  int64_t healed = 0;         // shards it computed because another member was lost
  double waited_seconds = 0;  // sum over all lanes: time in next_shard in which only other members had work
};

// The engine of one member. Other threads deliver frames and views. Several lanes may call next_shard in parallel.
class Group {
 public:
  Group(MemberId me, link::Links& links, GroupOptions options, Clock& clock);
  ~Group();

  // -- calls from outside, on any thread
  void adopt(const cluster::View& view);  // must be newer than the last one; the first view makes this process a member
  void fence(const std::string& why);     // all calls in progress and all later calls throw Fenced
  void on_frame(MemberId from, link::Frame frame);

  // -- calls of the step thread and its lanes
  // Begins the member's work at this collective with the state `origin`. A fresh view begins at collective 0; a joiner
  // begins at the collective before which its snapshot was taken.
  //
  // All members that begin with a fresh view must have the same origin. If the group has already computed, it fences
  // the members that did not begin at the group's step. Otherwise it fences all that did not begin at the highest step
  // among them. Two different states of one step are an Error.
  //
  // `history` is for a joiner: the donor's history() when the snapshot was taken. If the donor had applied a collective
  // that the group later repeated with another control message, the histories differ, and the joiner is fenced.
  void start_at(int64_t collective, Origin origin, std::optional<uint64_t> history = std::nullopt);
  // Opens the next collective. `lengths` has the number of floats of each row and may be empty. `control_message` is
  // used if this member is the leader. `mark` is a digest of this member's state. The collective gives a result only if
  // all marks are equal; otherwise next_shard and turn throw MembersDiffer on every computing member. A joining member
  // whose mark is not that of the group is fenced.
  //
  // The shards of `audit`, which is the same on all members, are computed by two members. If the results differ, a
  // third one decides. The wrong member is fenced (GroupOptions::on_wrong), or next_shard and turn throw MembersDiffer
  // on the leader: see group_audits.cpp.
  void begin(int64_t shards, std::vector<int64_t> lengths, std::string control_message,
             std::optional<Mark> mark = std::nullopt, Audit audit = {}, Purpose purpose = {});
  // Returns a shard to compute, or nullopt once the reduced result has come. Meanwhile it works on sums and waits.
  // Every lane calls it until it returns nullopt. Throws Fenced, for example when the collective made no progress for
  // too long.
  std::optional<ShardTask> next_shard();
  // Does the work of next_shard() for a caller that has no thread to wait in: it does at most one part of the work on
  // sums and returns at once. `idle` means that there is nothing to do until a frame, a view or a result arrives.
  struct Turn {
    enum class Kind { shard, worked, idle, over } kind = Kind::idle;
    ShardIndex shard = {};
    bool audit = false;  // see ShardTask
  };
  Turn turn();
  void deliver(ShardIndex shard, std::optional<Leaf> leaf);  // nullopt if the leaf is absent
  // For a shard that was given out as an audit. Only its digest is kept.
  void deliver_audit(ShardIndex shard, const std::optional<Leaf>& leaf);
  // Call it after next_shard has returned nullopt. Writes the reduced rows to `out`, leaves absent rows as they are,
  // and ends the collective.
  Reduced finish(const std::vector<float*>& out);

  // Sets Reduced::compare of the next collective in which this member takes part, for all members. Call it between
  // collectives.
  void ask_to_compare();
  // Returns whether this member's whole state was found equal to the group's since it began.
  bool compared() const;
  // Returns whether another member computes. If so, its mark is compared with this member's.
  bool has_peers() const;

  // Returns whether this member would compute this shard of the next collective under the current view. The answer is a
  // hint for loading samples ahead.
  bool expects(int64_t shard, int64_t shards) const;
  // true if the reduced result of the next collective is already here, so that this joiner replays it
  bool ahead() const;
  // true if a snapshot of this member's state, taken now, is new enough for the joiners of the newest view: the members
  // have agreed where the view begins, and this member has no reduced result left to replay.
  bool may_give_state() const;
  int64_t collective() const;  // number of the next collective to begin
  // Returns a digest of the control messages of all collectives before collective(). A snapshot that is taken now is
  // sent together with it.
  uint64_t history() const;
  MemberId id() const;
  cluster::View view() const;
  Counts counts() const;
  // The frames to and from the other members. Only while the links exist.
  NetworkUse traffic() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- a member: its connection to the coordinator, its links and its group ------------------------------------------

struct MemberOptions {
  cluster::ClientOptions client;  // its address is set by Member
  link::TcpOptions link;          // Member gets the certificate of its credentials
  GroupOptions group;
};

// What a member does for its run. Member does it with threads and TCP; a simulation does it by the events of its world.
class Membership {
 public:
  virtual ~Membership() = default;
  virtual Group& group() = 0;
  // Changes this member's report to the coordinator.
  virtual void report(const std::function<void(cluster::MemberReport&)>& change) = 0;
  virtual bool is_leader() const = 0;  // whether this member leads the newest view
  virtual bool joining() const = 0;    // this member takes the state from receive_state()
  virtual bool leased() const = 0;  // whether this member is the leader and holds the lease (cluster::Client::leased)
  virtual void check() const = 0;   // throws Fenced when this incarnation has ended
  // Returns whether no coordinator leads this member any more, although none has fenced it (cluster::Client::unled).
  virtual bool unled() const { return false; }

  // A joiner's state: the donor's snapshot and the collective before which it was taken. Blocks for a bounded time.
  // Throws Fenced when no state comes, when the donor is lost, or when a view lacks this member.
  struct Received {
    checkpoint::Loaded state;
    int64_t collective = 0;
    uint64_t history = 0;  // pass it and `collective` to Group::start_at
  };
  virtual Received receive_state() = 0;

  // The step thread calls this at each step boundary. If a joiner waits for the state, it calls `take`, which makes one
  // copy of the state, and sends the copy in the background. One copy serves all joiners that wait at that moment. It
  // also asks for a comparison after the next step, in which the joiner learns whether its state is that of the group.
  virtual void boundary(const std::function<checkpoint::OwnedSnapshot()>& take) = 0;
  // The step thread calls this at each step boundary; it is cheap. A joiner that has replayed every reduced result, and
  // whose state was found equal to the group's, asks the coordinator to compute.
  virtual void maybe_caught_up() = 0;

  // Requests of users that the leader has not taken yet. The leader puts them into its control message and then calls
  // taken() with the highest number.
  virtual std::vector<cluster::ControlRequest> requests() = 0;
  virtual void taken(int64_t number) = 0;
  // The exit code of the run, once the leader has ended it.
  virtual std::optional<int64_t> finished() const = 0;
};

class Member final : public Membership {
 public:
  // Joins the run and waits, at most `wait_seconds`, for the first view that contains this member. Throws Error when
  // the coordinator refuses the member, and Fenced when no view comes or the run is over.
  Member(MemberOptions options, Clock& clock, double wait_seconds = 300);
  ~Member() override;

  Group& group() override;
  void report(const std::function<void(cluster::MemberReport&)>& change) override;
  bool is_leader() const override;
  bool joining() const override;
  bool leased() const override;
  void check() const override;
  bool unled() const override;
  Received receive_state() override;
  void boundary(const std::function<checkpoint::OwnedSnapshot()>& take) override;
  void maybe_caught_up() override;
  std::vector<cluster::ControlRequest> requests() override;
  void taken(int64_t number) override;
  std::optional<int64_t> finished() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew::group
