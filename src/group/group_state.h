// The state of a member's engine. Private to group/.
//
// One mutex guards all fields of State. Long work (sums, merges, copies) runs without the mutex as a Work that one lane
// claims; its result counts only if the view is still the same. Frames are collected in an Outbox and sent without the
// mutex, because links may deliver frames at any time on their own threads. The rules that the frames follow are
// explained in group_views.cpp (views, healing), group_sums.cpp (sums of a collective), group_results.cpp (reduced
// results and their history), group_marks.cpp (comparison of states), group_audits.cpp (shards that are
// computed twice), group_patience.cpp (timeouts) and group_bounds.cpp (limits on memory).
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

#include "group/audit.h"
#include "group/group.h"
#include "group/group_frames.h"
#include "group/settle.h"
#include "group/summing.h"

namespace sinew::group {

// Frames and reports to send after the mutex is released.
struct Outbox {
  std::vector<std::pair<MemberId, link::Frame>> frames;
  std::vector<std::pair<MemberId, std::string>> lost;   // see GroupOptions::on_lost
  std::vector<std::pair<MemberId, std::string>> wrong;  // see GroupOptions::on_wrong
  void add(MemberId to, link::Frame frame) { frames.emplace_back(to, std::move(frame)); }
  bool empty() const { return frames.empty() && lost.empty() && wrong.empty(); }
};
using Commit = std::function<void(Outbox&)>;  // runs with the mutex held, if the view is still the same
using Work = std::function<Commit()>;         // runs without the mutex

// The reduced result of a collective, which this member has received or made.
struct Record {
  ReducedHead small;
  Payload small_bytes;
  std::vector<Payload> pieces;
  size_t bytes = 0;
  uint64_t after() const { return history_after(small.before, small.reduced.control_message, small.reduced.compare); }
};

// A reduced result of which parts are missing. All its parts come from one generation.
struct Gathering {
  std::optional<ReducedHead> small;
  Payload small_bytes;
  std::optional<BlockHead> head;  // the head of one of the received pieces
  std::map<int64_t, Payload> pieces;
  size_t bytes = 0;
};

// The sums and small bytes that other members have sent to this member for a collective.
struct Inbox {
  std::map<std::pair<int64_t, MemberId>, Payload> sums;  // the key is the piece and the member that sent the sums
  std::map<MemberId, Payload> small;
  std::map<int64_t, Opinions> audits;  // the key is the shard; this member's own digests are included
};

struct LeafSlot {
  enum class State { untouched, in_hand, delivered };
  State state = State::untouched;
  std::optional<Leaf> leaf;
};

// A shard that this member computes again.
struct AuditSlot {
  LeafSlot::State state = LeafSlot::State::untouched;
  Digest digest;  // set once the shard is delivered
};

// The assignment of work in the open collective under one view.
struct Plan {
  std::vector<MemberId> owners;                     // the owner of each shard
  std::map<MemberId, std::vector<TreeNode>> nodes;  // the nodes of each member that has shards
  std::vector<Piece> pieces;
  std::deque<int64_t> todo;      // shards of this member that no lane has begun
  int64_t missing = 0;           // number of this member's shards that are not delivered
  std::deque<size_t> to_send;    // pieces of other members that no lane has claimed
  std::deque<size_t> to_finish;  // pieces of this member for which all sums are here and that no lane has claimed
  std::vector<int64_t> awaited;  // for each piece of this member: the number of members whose sums are missing
  Audits audits;
  std::deque<int64_t> to_audit;   // shards that this member is to compute again and that no lane has begun
  std::deque<int64_t> to_digest;  // audited shards of this member whose digest no lane has claimed
  std::set<MemberId> wrong;       // members whose error in this collective was noticed under this view
  bool small_claimed = false, reduce_claimed = false;
  bool claims_agree = false;               // the claims of all members agree; only the leader finds out
  std::shared_ptr<const Summing> summing;  // set once all shards of this member are delivered
};

// The collective that this member works on.
struct Open {
  int64_t collective = 0;
  std::shared_ptr<const Shape> shape;
  std::string control_message;
  std::optional<Mark> mark;  // the mark of this member's state
  bool compare = false;      // this member asks for a comparison
  bool judged = false;       // the marks in the result are equal, and this member's mark is one of them
  double began = 0;
  std::vector<LeafSlot> leaves;
  Audit audit;
  std::map<int64_t, AuditSlot> audits;  // the key is the shard; they stay when the view changes
  std::vector<std::string> wrong;       // see Reduced::wrong
  std::optional<Plan> plan;             // nullopt: not all reports have come, or the reduced result has come already
  // for each shard: true if it was assigned to this member before the view changed
  std::optional<std::vector<bool>> first_mine;
};

struct Group::State {
  State(MemberId me_given, link::Links& links_given, GroupOptions options_given, Clock& clock_given)
      : me(me_given), links(links_given), options(std::move(options_given)), clock(clock_given) {}

  const MemberId me;
  link::Links& links;
  const GroupOptions options;
  Clock& clock;

  std::mutex adopting;  // taken before `mutex`: the member adopts one view at a time, including its links
  mutable std::mutex mutex;
  std::condition_variable changed;

  // -- timeout of a collective
  double still = 0, looked = 0;  // `still`: seconds without progress, measured at `looked`, the time of the last check
  // smoothed duration of the collectives in which this member computed; 0: no such collective is over
  double usual_collective = 0;
  double progress_sent_at = -1e9;  // when this member last sent a progress frame
  std::set<MemberId> blamed;       // members that this member has reported since the last progress

  // -- the end of this incarnation
  std::optional<std::string> out;
  std::exception_ptr failure;

  // -- the view
  std::optional<cluster::View> view;
  bool computing = false, computed_before = false;
  std::map<MemberId, ViewChangeReport> reports;
  std::optional<Settled> settled;
  std::vector<std::pair<MemberId, link::Frame>> early;  // frames of views that have not reached this member yet
  size_t early_bytes = 0;
  std::set<MemberId> given_up;  // joiners that receive too slowly; this member sends them nothing more under this view

  // -- collectives
  bool started = false, born = false;  // born: this member began with a fresh view
  Origin origin;
  int64_t collective = 0;  // the next one to begin
  // history of all collectives before `collective`; valid while no collective is open
  std::optional<uint64_t> collective_history;
  std::optional<int64_t> have;      // the first collective whose result is missing; nullopt: a joiner that waits
  std::optional<uint64_t> history;  // history of all collectives before `have`
  std::map<int64_t, std::shared_ptr<const Record>>
      records;  // results that this member has; the last is of collective have - 1
  std::map<int64_t, Gathering> gatherings;
  size_t result_bytes = 0;  // size of the largest known reduced result
  std::map<int64_t, Inbox> inboxes;
  std::optional<Open> open;
  bool wants_comparison = false, compared = false;
  Counts counts;
  struct Guess {  // the plan of a collective that this member has not begun, for expects()
    Generation generation;
    std::vector<MemberId> owners;
  } guess;

  // -- group.cpp
  void check_alive() const;            // throws the reason why this incarnation ended
  void fence(const std::string& why);  // ends this incarnation; further calls throw Fenced
  void fail(const Error& error);
  bool ended() const { return out || failure; }
  void send(Outbox& outbox);  // call it without the mutex
  void send_to_others(Kind kind, int64_t of_collective, int64_t part, Payload payload, bool joiners, Outbox& outbox);
  link::Frame frame(Kind kind, int64_t of_collective, int64_t part, Payload payload) const;
  Turn take_turn(std::unique_lock<std::mutex>& lock);
  void do_work(const Work& work, std::unique_lock<std::mutex>& lock);
  void wait(std::unique_lock<std::mutex>& lock);

  // -- group_patience.cpp: timeout of a collective
  void note_progress();  // notes progress: a frame came, or a result was made here
  void send_progress(Outbox& outbox);
  double patience() const;  // seconds that a collective may take without progress
  void learn_usual_collective(double took);
  void check_timeout(Outbox& outbox);                               // called while a lane waits; reports silent members
  std::set<MemberId> stalled_members(bool include_indirect) const;  // members that this member waits for
  void add_missing_senders(std::set<MemberId>& silent) const;

  // -- group_bounds.cpp
  void learn_result_size(const link::Frame& one);
  // limit on the bytes of results that this member, as a joiner, keeps until it can replay them
  size_t most_for_joiner() const;
  size_t most_early() const;
  bool takes(MemberId joiner, Outbox& outbox);  // false if this member sends nothing more to the joiner

  // -- group_views.cpp
  void enter(const cluster::View& next, Outbox& outbox);
  void send_view_change_report(Outbox& outbox);
  void settle(Outbox& outbox);  // has an effect once all computing members have sent their reports
  void hand_over(MemberId to, const ViewChangeReport& report, Outbox& outbox);
  void take(MemberId from, const link::Frame& frame, Outbox& outbox);  // takes a frame of the current generation
  void keep_early(MemberId from, link::Frame frame);
  std::string waiting_for() const;  // returns a sentence

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

  // -- group_audits.cpp
  const Opinions& opinions_of(int64_t shard) const;
  std::optional<ShardIndex> next_audit();
  bool has_audit_in_hand() const;
  Work digest_work(int64_t shard);
  void send_opinion(int64_t shard, Digest digest, Outbox& outbox);
  void take_opinion(MemberId from, const link::Frame& frame);
  void act_on_audits(Outbox& outbox);
  void compute_or_send(int64_t shard, Outbox& outbox);
  void act_on_verdict(const AuditVerdict& verdict, const PlannedAudit& planned, Outbox& outbox);

  // -- group_marks.cpp
  bool claims_agree();                       // ends this incarnation if the members compute different things
  void judge_marks(const Reduced& reduced);  // ends this incarnation if the members' states differ
  std::string name_in_view(MemberId id) const;
  void end_differing(const std::string& what, std::vector<MemberId> outvoted);  // ends it with MembersDiffer

  // -- group_results.cpp
  void begin_at(int64_t first, std::optional<uint64_t> history_there);
  void take_result(MemberId from, const link::Frame& frame);
  void gather_piece(MemberId from, int64_t of_collective, int64_t part, Payload payload);
  void gather_small(MemberId from, int64_t of_collective, Payload payload);
  void complete();  // turns complete gatherings into records, in order
  void forget();    // drops records that no member can ask for
};

// Copies the rows of a reduced result to `out` and leaves absent rows as they are. Returns an error if the record does
// not fit the collective.
std::expected<void, std::string> write_rows(const Record& record, const Shape& shape, const std::vector<float*>& out);

}  // namespace sinew::group
