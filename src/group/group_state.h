// What a member's engine remembers. Private to group/.
//
// One mutex guards it all; what takes long (sums, merges, copies) is done outside as a Work that was claimed once, and
// its result is taken only if the view is still the same. Frames are collected in an Outbox and sent after unlocking:
// links may deliver at any moment on threads of their own. The rules the frames follow are told where they are kept:
// group_views.cpp (views, healing), group_sums.cpp (sums of a round), group_roots.cpp (roots and their history),
// group_patience.cpp (rounds that stand still), group_bounds.cpp (how much may wait).
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "group/group.h"
#include "group/group_frames.h"
#include "group/settle.h"
#include "group/summing.h"

namespace sinew::group {

// What is to be said once the lock is let go.
struct Outbox {
  std::vector<std::pair<MemberId, link::Frame>> frames;
  std::vector<std::pair<MemberId, std::string>> lost;  // see GroupOptions::on_lost
  void add(MemberId to, link::Frame frame) { frames.emplace_back(to, std::move(frame)); }
};
using Commit = std::function<void(Outbox&)>;  // with the lock, if the view is still the same
using Work = std::function<Commit()>;         // without

// The root of a round, as it came.
struct Record {
  ReducedHead small;
  Payload small_bytes;
  std::vector<Payload> pieces;
  size_t bytes = 0;
  uint64_t after() const { return history_after(small.before, small.reduced.control_message); }
};

// A root that is coming in, all of it in one generation.
struct Gathering {
  std::optional<ReducedHead> small;
  Payload small_bytes;
  std::optional<BlockHead> head;  // of one of its pieces
  std::map<int64_t, Payload> pieces;
  size_t bytes = 0;
};

// What others sent this member to be summed, for a round.
struct Inbox {
  std::map<std::pair<int64_t, MemberId>, Payload> sums;  // by piece and sender
  std::map<MemberId, Payload> small;
};

struct LeafSlot {
  enum class State { untouched, in_hand, delivered };
  State state = State::untouched;
  std::optional<Leaf> leaf;
};

// Who adds what in the open round, under one view.
struct Plan {
  std::vector<MemberId> owners;                     // by shard
  std::map<MemberId, std::vector<TreeNode>> nodes;  // of each who has shards
  std::vector<Piece> pieces;
  std::deque<int64_t> todo;      // shards for this member nobody has begun
  int64_t missing = 0;           // shards of this member not delivered
  std::deque<size_t> to_send;    // pieces of others that nobody claimed
  std::deque<size_t> to_finish;  // of this member, that nobody claimed and everything is here for
  std::vector<int64_t> awaited;  // by piece of this member: how many have not sent their sums
  bool small_claimed = false, reduce_claimed = false;
  std::shared_ptr<const Summing> summing;  // once all shards of this member are delivered
};

// The round this member is in.
struct Open {
  int64_t collective = 0;
  std::shared_ptr<const Shape> shape;
  std::string control_message;
  double began = 0;
  std::vector<LeafSlot> leaves;
  std::optional<Plan> plan;                     // none: the view is not settled, or the root is here already
  std::optional<std::vector<bool>> first_mine;  // by shard: was this member's before anybody was lost
};

struct Group::State {
  State(MemberId me_given, link::Links& links_given, GroupOptions options_given, Clock& clock_given)
      : me(me_given), links(links_given), options(std::move(options_given)), clock(clock_given) {}

  const MemberId me;
  link::Links& links;
  const GroupOptions options;
  Clock& clock;

  std::mutex adopting;  // taken before `mutex`: views are taken up one after the other, links and all
  mutable std::mutex mutex;
  std::condition_variable changed;

  // -- patience
  double still = 0, looked = 0;    // seconds in which nothing came in or was made here, as of the last look
  double usual_collective = 0;     // seconds a round this member computed in, smoothed; 0: none is over
  double progress_sent_at = -1e9;  // when the others were last told
  std::set<MemberId> blamed;       // in this standstill

  // -- the end of this life
  std::optional<std::string> out;
  std::exception_ptr failure;

  // -- the view
  std::optional<cluster::View> view;
  bool computing = false, computed_before = false;
  std::map<MemberId, ViewChangeReport> reports;
  std::optional<Settled> settled;
  std::vector<std::pair<MemberId, link::Frame>> early;  // frames of views to come
  size_t early_bytes = 0;
  std::set<MemberId> given_up;  // joining seats of this view that take too little: they are sent nothing more

  // -- rounds
  bool started = false, born = false;  // born: its first state is that of a fresh view
  Origin origin;
  int64_t collective = 0;                      // next to begin
  std::optional<uint64_t> collective_history;  // of all rounds before `round`, outside of a round
  std::optional<int64_t> have;                 // the first round whose root is not here; none: a joiner that waits
  std::optional<uint64_t> history;             // of all rounds before `have`
  std::map<int64_t, std::shared_ptr<const Record>> records;  // roots that are here; the last is that of have - 1
  std::map<int64_t, Gathering> gatherings;
  size_t result_bytes = 0;  // of the largest root heard of
  std::map<int64_t, Inbox> inboxes;
  std::optional<Open> open;
  Counts counts;
  struct Guess {  // the plan of a round to come, for expects()
    Generation generation;
    std::vector<MemberId> owners;
  } guess;

  // -- group.cpp
  void check_alive() const;                                     // throws what ended this life
  void fence(const std::string& why);                           // PutOut
  void fail(const std::string& what, const std::string& hint);  // Error
  bool ended() const { return out || failure; }
  void send(Outbox& outbox);  // without the lock
  void send_to_others(Kind kind, int64_t of_collective, int64_t part, Payload payload, bool joiners, Outbox& outbox);
  link::Frame frame(Kind kind, int64_t of_collective, int64_t part, Payload payload) const;
  Turn take_turn(std::unique_lock<std::mutex>& lock);
  void do_work(const Work& work, std::unique_lock<std::mutex>& lock);
  void wait(std::unique_lock<std::mutex>& lock);

  // -- group_patience.cpp
  void moves();  // something came in, or was made
  void send_progress(Outbox& outbox);
  double patience() const;
  void learn_usual_collective(double took);
  void be_patient(Outbox& outbox);                        // a look of one who waits
  std::set<MemberId> silent_ones(bool by_hearsay) const;  // whom this member waits for
  void add_debtors(std::set<MemberId>& silent) const;

  // -- group_bounds.cpp
  void learn_result_size(const link::Frame& one);
  size_t most_for_joiner() const;  // roots that wait here
  size_t most_early() const;
  bool takes(MemberId joiner, Outbox& outbox);  // false: it is given up

  // -- group_views.cpp
  void enter(const cluster::View& next, Outbox& outbox);
  void send_view_change_report(Outbox& outbox);
  void settle(Outbox& outbox);  // if all computing members said where they are
  void hand_over(MemberId to, const ViewChangeReport& report, Outbox& outbox);
  void take(MemberId from, const link::Frame& frame, Outbox& outbox);  // a frame of this generation
  void keep_early(MemberId from, link::Frame frame);
  std::string waiting_for() const;  // a sentence

  // -- group_sums.cpp
  void make_plan();
  std::optional<Work> claim();
  std::shared_ptr<const Summing> summing() const;
  void count_in(int64_t piece, MemberId from);
  Work small_work();
  Work send_work(size_t piece);
  Work finish_work(size_t piece);
  Work reduce_work();
  void take_sums(MemberId from, const link::Frame& frame);

  // -- group_roots.cpp
  void begin_at(int64_t first, std::optional<uint64_t> history_there);
  void take_result(MemberId from, const link::Frame& frame);
  void gather_piece(MemberId from, int64_t of_collective, int64_t part, Payload payload);
  void gather_small(MemberId from, int64_t of_collective, Payload payload);
  void complete();  // turns gatherings into records, in order of rounds
  void forget();    // records nobody will ask for
};

// The root's rows to where they belong; absent ones are left alone. The error: what is wrong with the record.
std::expected<void, std::string> write_rows(const Record& record, const Shape& shape, const std::vector<float*>& out);

}  // namespace sinew::group
