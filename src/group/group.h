// One member's part in reducing collectives together with the other members, whichever of them die.
//
// distribute/ (training) and its tests use this room. It knows no tensors: the result of a shard is rows of floats and
// a few small bytes. A collective is one reduction over S shards: the gradients of a training step, or a pass of
// evaluation. Any member can compute any shard. Each member adds its shards to sums of maximal aligned subtrees and
// sends each slice of these sums to the slice's owner. The owner finishes the fixed tree and sends its slice of the
// reduced result to all members. Therefore the reduced result has the same bits as the result of a single process
// (base/tree.h), however the shards were spread and however often the view changed.
//
// Healing: a member keeps the results of its shards until the collective is over. When the view changes, every member
// reports what it has (ViewChangeReport). Only the shards that no member has move to another member, and the sums are
// sent anew. No shard is computed twice while a member has its result. The members are at most one collective apart,
// and each keeps the reduced results of the last two, so that a member that has a result can send it to one that lacks
// it. Nothing is rolled back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
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

// The state a member began with.
struct Origin {
  int64_t step = 0;
  uint64_t digest = 0;
  bool operator==(const Origin&) const = default;
};

// The result of a shard. The rows must stay readable until the collective after the next begins, or until the group
// drops `keep`.
struct Leaf {
  std::vector<const float*> rows;  // one for each row of the collective, of its length; null: absent. Empty: all absent
  std::string small;               // merged along the tree by GroupOptions::merge
  std::shared_ptr<const void> keep;
};

// The reduced result of a collective, except its rows of floats: Group::finish writes these to the caller's memory.
struct Reduced {
  std::vector<bool> present;    // by row: at least one shard had it
  bool any = false;             // at least one shard was not absent; otherwise `small` is empty
  std::string small;            // the small bytes of all shards, merged
  std::string control_message;  // what the leader sent with this collective; the same on every member
};

struct GroupOptions {
  // Merges the small bytes of the left and the right child of a tree node. Called on any thread.
  std::function<std::string(std::string_view left, std::string_view right)> merge = nullptr;
  // How long a collective may stand still, that is, bring no frame, no view and no result. The limit is the larger of
  // this and 40 usual collectives; it is ten times this in the first collective. After it the member calls on_lost for
  // the members it waits for. After twice the limit the member fences itself. A supervisor ends a worker that really
  // hangs earlier than that.
  double patience_seconds = 120;
  // Reports a member with which the group cannot go on, and the reason. The coordinator decides. Called on any thread.
  std::function<void(MemberId, const std::string& why)> on_lost = nullptr;
  int64_t piece_floats = int64_t{1} << 18;  // a slice is sent and summed in pieces of this size; equal on all members
  // Limits on memory. The first three are at least a few reduced results, however large the model (group_bounds.cpp).
  size_t joiner_bytes = size_t{2} << 30;   // a joiner with more results to replay fences itself
  size_t early_bytes = size_t{256} << 20;  // frames kept of views that have not reached this member yet
  size_t queue_bytes = size_t{256} << 20;  // results queued for a joiner besides handover_bytes; with more it is lost
  size_t handover_bytes = size_t{256} << 20;  // older results kept for joiners, besides the last two
};

struct Counts {               // of this member, since it began
  int64_t computed = 0;       // shards delivered
  int64_t collectives = 0;    // collectives finished
  int64_t healed = 0;         // shards it computed because another member was lost
  double waited_seconds = 0;  // sum over all lanes: time in next_shard without work
};

// The engine of one member. Frames and views come in on other threads. Several lanes may call next_shard in parallel.
class Group {
 public:
  Group(MemberId me, link::Links& links, GroupOptions options, Clock& clock);
  ~Group();

  // -- calls from outside, on any thread
  void adopt(const cluster::View& view);  // newer than the last one; the first view makes this process a member
  void fence(const std::string& why);     // all calls in progress and all later calls throw Fenced
  void on_frame(MemberId from, link::Frame frame);

  // -- calls of the step thread and its lanes
  // Begins the member's work at this collective with the state `origin`. A fresh view begins at collective 0; a joiner
  // begins at the collective before which its snapshot was taken. All members that begin with a fresh view must have
  // the same origin. The group fences those whose step differs from the step it went on from, or, before it went on,
  // from the furthest step among them. Two different states of one step are an Error. `history`: for a joiner, the
  // donor's history() at the boundary of the snapshot. It shows whether the donor had followed a collective that the
  // group later repeated with another control message; in that case the joiner is fenced.
  void start_at(int64_t collective, Origin origin, std::optional<uint64_t> history = std::nullopt);
  // Opens the next collective. `lengths`: floats of each row; may be empty. `control_message`: used if this member is
  // the leader.
  void begin(int64_t shards, std::vector<int64_t> lengths, std::string control_message);
  // Returns a shard to compute, or nullopt once the reduced result is here. Until then it works on sums and waits.
  // Every lane calls it until it returns nullopt. Throws Fenced, also when the patience has run out.
  std::optional<ShardIndex> next_shard();
  // The same for a caller that has no thread to wait in: looks once and does at most one piece of work on sums. `idle`:
  // there is nothing to do until a frame, a view or a result comes.
  struct Turn {
    enum class Kind { shard, worked, idle, over } kind = Kind::idle;
    ShardIndex shard;
  };
  Turn turn();
  void deliver(ShardIndex shard, std::optional<Leaf> leaf);  // nullopt: an absent leaf
  // To be called after next_shard has returned nullopt. Writes the reduced rows to `out`, leaves absent rows as they
  // are, and ends the collective.
  Reduced finish(const std::vector<float*>& out);

  // Whether this member would compute this shard of the next collective under the current view. A hint for loading
  // samples ahead.
  bool expects(int64_t shard, int64_t shards) const;
  bool ahead() const;          // the reduced result of the next collective is already here: this joiner replays it
  int64_t collective() const;  // number of the next collective to begin
  // A digest of the control messages of all collectives before collective(). A snapshot taken now is sent with it.
  uint64_t history() const;
  cluster::View view() const;
  Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- a member: its connection to the coordinator, its links and its group ------------------------------------------

struct MemberOptions {
  cluster::ClientOptions client;  // without address
  link::TcpOptions link;
  GroupOptions group;
};

class Member {
 public:
  // Joins the run and waits, at most `wait_seconds`, for the first view that contains this member. Throws Error when
  // the coordinator refuses the member, and Fenced when no view comes or the run is over.
  Member(MemberOptions options, Clock& clock, double wait_seconds = 300);
  ~Member();

  Group& group();
  cluster::Client& client();
  bool is_leader() const;  // of the newest view
  bool joining() const;    // this member takes the state from receive_state()
  bool leased() const;     // it is the leader and holds the lease (cluster::Client::leased)

  void check() const;  // throws Fenced when this incarnation has ended

  // A joiner's state: the donor's snapshot and the collective before which it was taken. Blocks for at most
  // `wait_seconds`. Throws Fenced when no state comes, when the donor is lost, or when a view lacks this member.
  struct Received {
    checkpoint::Loaded state;
    int64_t collective = 0;
    uint64_t history = 0;  // pass both to Group::start_at
  };
  Received receive_state(double wait_seconds = 300);

  // The step thread calls this at each step boundary. If a joiner waits for the state, it calls `take`, which makes one
  // copy of the state, and sends the copy in the background. One copy serves all joiners that wait at that moment.
  void boundary(const std::function<checkpoint::OwnedSnapshot()>& take);
  // The step thread calls this at each step boundary; it is cheap. A joiner that has replayed every reduced result asks
  // the coordinator to compute.
  void maybe_caught_up();

  // Requests of people that the leader has not taken yet. The leader puts them into its control message and then calls
  // taken() with the highest number.
  std::vector<cluster::ControlRequest> requests();
  void taken(int64_t number);
  // The exit code of the run, once the leader has ended it.
  std::optional<int64_t> finished() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew::group
