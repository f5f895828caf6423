// A group of threads with a coordinator that follows a script of random numbers: what the group's tests run. Test only.
//
// Each member runs the same rounds; a shard's values are a function of (round, shard) and of all roots before, so one
// wrong bit spoils whatever follows. Every root is compared with that of a single process. Members are killed, joined,
// given other shares and let go at random moments; what is checked never depends on when.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/tree.h"
#include "group/group.h"

namespace sinew::group::simulation {

// ---- the job -------------------------------------------------------------------------------------------------------

struct CollectiveShape {
  int64_t shards = 1;
  std::vector<int64_t> lengths;
};

struct Expected {  // of one round
  std::vector<std::vector<float>> rows;
  Reduced reduced;
};

// What is computed: pure functions of the seed, the round, and the state behind all rounds before.
class Job {
 public:
  Job(uint64_t seed, std::vector<CollectiveShape> shapes) : seed_(seed), shapes_(std::move(shapes)) {}
  int64_t collectives() const { return static_cast<int64_t>(shapes_.size()); }
  const CollectiveShape& shape(int64_t collective) const { return shapes_[static_cast<size_t>(collective)]; }
  std::optional<Leaf> leaf(int64_t collective, int64_t shard, uint64_t state) const;
  // What a single process gets.
  Expected expected(int64_t collective, uint64_t state) const;
  // The state behind a round. Also what start_at is told.
  static uint64_t next_state(uint64_t state, const std::vector<std::vector<float>>& rows, const Reduced& reduced);

 private:
  uint64_t seed_;
  std::vector<CollectiveShape> shapes_;
};

std::vector<CollectiveShape> random_shapes(uint64_t seed, int64_t collectives);
// What is wrong with this root; empty: nothing.
std::string difference(const Expected& right, const std::vector<std::vector<float>>& rows, const Reduced& reduced);
// The tree's arithmetic on small bytes: they tell the shape of the tree.
std::string joined(std::string_view left, std::string_view right);
std::string merge(std::string_view left, std::string_view right);  // the same, slow now and then
std::vector<std::vector<float>> blank(const std::vector<int64_t>& lengths);

// ---- the members ---------------------------------------------------------------------------------------------------

// How links are made and broken: in memory or TCP.
struct World {
  std::function<std::unique_ptr<link::Links>(link::Events)> join = nullptr;
  std::function<void(MemberId)> kill = nullptr;  // null: its links are closed
};

struct Snapshot {
  int64_t collective = 0;
  uint64_t state = 0, history = 0;
};

class Town;

class Person {
 public:
  Person(Town& town, MemberId id, uint64_t seed, int lanes);
  ~Person();
  void adopt_from_now_on();          // starts its threads
  void end(const std::string& why);  // and no word from it any more
  void close();                      // after end: its threads and links are gone too

  const MemberId id;
  const std::string& address() const { return address_; }
  bool over() const { return over_; }  // its life is: killed, put out, failed
  std::string why() const;             // if it is
  std::atomic<int64_t> reached{0};     // rounds behind it
  std::atomic<bool> established{false}, caught_up{false};
  std::atomic<bool> asked_to_end{false};  // the town wants it to go, and expects no more of it
  Counts counts() const { return group_->counts(); }
  uint64_t history() const { return group_->history(); }
  Generation generation() const { return group_->view().generation; }
  int64_t delivered(int64_t from_collective) const;
  std::map<int64_t, std::string> control_messages() const;
  std::optional<int64_t> last_collective() const;  // it was in

 private:
  void follow_views();
  void live();
  void collectives();
  bool start();
  void lane(int64_t collective, uint64_t state, RandomStream random, bool steps);  // steps: on the step thread
  void serve_joiners();

  Town& town_;
  RandomStream random_;
  const int lanes_;
  std::string address_;
  std::unique_ptr<link::Links> links_;
  std::unique_ptr<Group> group_;
  std::thread views_, life_;
  std::atomic<bool> over_{false}, ended_{false};
  mutable std::mutex mutex_;
  std::string why_;
  std::map<int64_t, int64_t> delivered_;  // by round
  std::map<int64_t, std::string> control_messages_;
  uint64_t state_ = 0;
};

// ---- the place they live in ----------------------------------------------------------------------------------------

struct Script {
  uint64_t seed = 0;
  int64_t members = 3, collectives = 8;
  int kills = 0, joins = 0, shares = 0, leaves = 0;  // how many of each, at random moments
  bool slow_views = true;                            // each member hears of a view when it likes to
};

class Town {
 public:
  Town(const Script& script, World world);
  ~Town();
  void run();     // to the end of the job, then checks what must hold; failures are gtest's
  struct Tally {  // what happened, so that a test can ask for enough of it
    int64_t killed = 0, joined = 0, admitted = 0, gave_up = 0, healed = 0, recomputed = 0, views = 0;
    void operator+=(const Tally& other);
  };
  const Tally& tally() const { return tally_; }

 private:
  friend class Person;
  // -- for the members
  const Script script_;
  const Job job_;
  std::vector<Expected> expected_;  // by round
  std::vector<uint64_t> states_;    // before each round, and behind the last
  World world_;
  RandomStream random_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  cluster::View view_;                                 // newest
  std::map<MemberId, std::optional<Snapshot>> asked_;  // by joiner
  std::atomic<int64_t> delivered_{0};
  std::atomic<bool> stopping_{false};
  // -- the coordinator
  void publish(const std::string& why);  // with the lock
  void remove_the_dead();
  void seat_those_who_caught_up();
  void act();
  void kill_some();
  void add_joiner();
  void change_shares();
  void let_one_go();
  std::vector<Person*> established_computing();
  bool all_done() const;
  void check();
  std::vector<std::unique_ptr<Person>> people_;
  std::vector<std::function<void()>> actions_;
  std::vector<int64_t> moments_;  // in shards delivered by all
  std::set<MemberId> leaving_;
  int64_t next_id_ = 1;
  Tally tally_;
};

}  // namespace sinew::group::simulation
