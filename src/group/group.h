// One member's part in adding up rounds with the others, whoever dies.
//
// For distribute/ (training) and its tests; knows no tensors: a shard's result is rows of floats and a few small bytes.
// A round is one sum over S shards: a training step's gradients, or a pass of evaluation. Shards are computed wherever
// they are; each member adds what it has to sums of maximal aligned subtrees and sends each slice of them to the
// slice's owner; the owner finishes the fixed tree and sends the root to all. So the root is the one a single process
// would have computed, to the last bit (base/tree.h), however the shards were spread and however often the view
// changed.
//
// Healing: a result stays with the member that has it until the round is over; a new view asks everyone what they have
// (`here`), moves only the shards nobody has, and sends sums anew: no shard is computed twice while its result lives.
// Members are at most one round apart, and the roots of the last two rounds are kept: who has a root gives it to who
// does not. Nothing is rolled back.
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

// This life of the member is over (put out of the view, too far behind, ahead of everybody): begin another.
struct Fenced : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::optional<int64_t> finished = std::nullopt;  // from Member's constructor: the run's exit code, if it is over
};

// The state a member began with.
struct Origin {
  int64_t step = 0;
  uint64_t digest = 0;
  bool operator==(const Origin&) const = default;
};

// A shard's result. The rows stay readable until the round after the next begins, or `keep` is dropped by the group.
struct Leaf {
  std::vector<const float*> rows;  // by row, of the round's lengths; null: absent. Empty: all absent
  std::string small;               // merged along the tree by GroupOptions::merge
  std::shared_ptr<const void> keep;
};

struct Reduced {
  std::vector<bool> present;  // by row: some shard had it
  bool any = false;           // some shard was not absent; else `small` is empty
  std::string small;
  std::string control_message;  // what the lead said with this round; the same on every member
};

struct GroupOptions {
  // The tree's arithmetic on small bytes: left and right child to parent. Called on any thread.
  std::function<std::string(std::string_view left, std::string_view right)> merge = nullptr;
  // No frame, no view, no result for so long while a round waits, and for 40 usual rounds; ten times as long in the
  // first round: on_lost is told whom the member waits for. As long again, and this life is over. Longer than a
  // supervisor waits, who ends who really hangs.
  double patience_seconds = 120;
  // A member that the group can not go on with, and why: the coordinator's to decide. Called on any thread.
  std::function<void(MemberId, const std::string& why)> on_lost = nullptr;
  int64_t piece_floats = int64_t{1} << 18;  // slices travel and are summed in pieces of so many; equal on all members
  // The first three are some roots at least, however large the model (group_bounds.cpp).
  size_t joiner_bytes = size_t{2} << 30;   // roots a joiner may have waiting before it gives this life up
  size_t early_bytes = size_t{256} << 20;  // frames kept of views that this member has not heard of yet
  size_t queue_bytes = size_t{256} << 20;  // roots queued for a joiner, besides what is handed over: more, it is lost
  size_t handover_bytes = size_t{256} << 20;  // older roots kept for joiners besides the last two
};

struct Counts {               // of this member, since it began
  int64_t computed = 0;       // shards delivered
  int64_t collectives = 0;    // roots it has
  int64_t healed = 0;         // shards it computed because another was lost
  double waited_seconds = 0;  // all lanes together, in next_shard, with nothing to do
};

// The engine of one member. Frames and views come in from other threads; lanes call next_shard side by side.
class Group {
 public:
  Group(MemberId me, link::Links& links, GroupOptions options, Clock& clock);
  ~Group();

  // -- from outside, any thread
  void adopt(const cluster::View& view);  // newer than the last; the first one seats this member
  void fence(const std::string& why);     // every call under way and to come throws PutOut
  void on_frame(MemberId from, link::Frame frame);

  // -- from the step thread and its lanes
  // Round 0 is the first of a fresh view; a joiner begins at the round its snapshot was taken before. `origin`: the
  // state there. Of those who begin with a fresh view the ones at another step than the group, or the furthest of
  // them, are put out; different states of one step are an Error. `history`, of a joiner: the donor's, of the
  // boundary its snapshot was taken at: a joiner whose donor had followed a round that the group made anew with another
  // note finds out by it and is put out.
  void start_at(int64_t collective, Origin origin, std::optional<uint64_t> history = std::nullopt);
  // Opens the next round. `lengths`: floats of each row, may be empty. `note`: used if this member is the lead.
  void begin(int64_t shards, std::vector<int64_t> lengths, std::string control_message);
  // A shard to compute; nullopt: the round's root is here. In between it works on sums and waits. Every lane calls it
  // until it says nullopt. Throws PutOut, also when patience ended in vain.
  std::optional<ShardIndex> next_shard();
  // The same for whoever has no thread to wait in: one look, at most one piece of work on sums. `idle`: nothing can be
  // done until a frame, a view or a result comes.
  struct Turn {
    enum class Kind { shard, worked, idle, over } kind = Kind::idle;
    ShardIndex shard;
  };
  Turn turn();
  void deliver(ShardIndex shard, std::optional<Leaf> leaf);  // nullopt: an absent leaf
  // After nullopt: writes the root's rows to `out` (absent rows are left alone) and ends the round.
  Reduced finish(const std::vector<float*>& out);

  // Would this shard of the next round be computed here, as things stand? A hint for loading ahead.
  bool expects(int64_t shard, int64_t shards) const;
  bool ahead() const;          // the root of the next round is already here: a joiner that replays
  int64_t collective() const;  // the next to begin
  // A digest of the notes of all rounds before round(): what a snapshot taken now must be sent with.
  uint64_t history() const;
  cluster::View view() const;
  Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- a member: its line to the coordinator, its links, its group
// ------------------------------------------------------

struct MemberOptions {
  cluster::ClientOptions client;  // without address
  link::TcpOptions link;
  GroupOptions group;
};

class Member {
 public:
  // Joins and waits for the first view with a seat (bounded by `wait_seconds`). Throws Error, PutOut.
  Member(MemberOptions options, Clock& clock, double wait_seconds = 300);
  ~Member();

  Group& group();
  cluster::Client& client();
  bool is_leader() const;  // of the newest view
  bool joining() const;    // a joining seat: take the state from receive_state()
  bool leased() const;     // see cluster::Client::leased

  void check() const;  // throws PutOut when this life is over

  // A joiner: the donor's snapshot and the round it was taken before. Blocks (bounded); throws PutOut when the donor is
  // lost or the view forgets this member.
  struct Received {
    checkpoint::Loaded state;
    int64_t collective = 0;
    uint64_t history = 0;  // both for Group::start_at
  };
  Received receive_state(double wait_seconds = 300);

  // At each step boundary, on the step thread: calls `take` (one copy of the state) if a joiner waits for one, and
  // sends it in the background. One copy serves all joiners of that moment.
  void boundary(const std::function<checkpoint::OwnedSnapshot()>& take);
  // A joiner that has replayed every root there is asks to compute; called at each step boundary, cheap.
  void maybe_caught_up();

  // Requests of people not yet taken; the lead puts them into its note and says so.
  std::vector<cluster::ControlRequest> requests();
  void taken(int64_t number);
  // What the lead said about the end, if it did.
  std::optional<int64_t> finished() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew::group
