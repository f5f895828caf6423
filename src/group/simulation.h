// A group of threads with a coordinator that follows a script of random numbers, for the tests of the group.
//
// All members run the same collectives. The values of a shard are a function of (collective, shard) and of all earlier
// results, so one wrong bit changes all later results. The tests compare every result with that of a single process.
// Members are killed, join, get other shares and leave at random times; the checks do not depend on these times.
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

struct Expected {  // the result of one collective
  std::vector<std::vector<float>> rows;
  Reduced reduced;
};

// The job: its values are pure functions of the seed, the collective, and the state after all earlier collectives.
class Job {
 public:
  Job(uint64_t seed, std::vector<CollectiveShape> shapes) : seed_(seed), shapes_(std::move(shapes)) {}
  int64_t collectives() const { return static_cast<int64_t>(shapes_.size()); }
  const CollectiveShape& shape(int64_t collective) const { return shapes_[static_cast<size_t>(collective)]; }
  std::optional<Leaf> leaf(int64_t collective, int64_t shard, uint64_t state) const;
  // Returns the result of a single process.
  Expected expected(int64_t collective, uint64_t state) const;
  // Returns the state after a collective, which is also the argument of start_at.
  static uint64_t next_state(uint64_t state, const std::vector<std::vector<float>>& rows, const Reduced& reduced);

 private:
  uint64_t seed_;
  std::vector<CollectiveShape> shapes_;
};

std::vector<CollectiveShape> random_shapes(uint64_t seed, int64_t collectives);
// Returns the problem with this result, or an empty string if there is none.
std::string difference(const Expected& right, const std::vector<std::vector<float>>& rows, const Reduced& reduced);
// Merges small bytes. The result depends on the shape of the tree.
std::string joined(std::string_view left, std::string_view right);
// returns what joined() returns, but sometimes slowly
std::string merge(std::string_view left, std::string_view right);
std::vector<std::vector<float>> blank(const std::vector<int64_t>& lengths);

// ---- the members ---------------------------------------------------------------------------------------------------

// Makes and breaks links, in memory or over TCP.
struct World {
  std::function<std::unique_ptr<link::Links>(link::Events)> join = nullptr;
  std::function<void(MemberId)> kill = nullptr;  // if null, the member's links are closed instead
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
  void end(const std::string& why);  // from now on it sends nothing
  void close();                      // after end(): also ends its threads and links

  const MemberId id;
  const std::string& address() const { return address_; }
  bool over() const { return over_; }  // true if it was killed, was fenced, or failed
  std::string why() const;             // the reason, if it is over
  std::atomic<int64_t> reached{0};     // number of collectives that it has finished
  std::atomic<bool> established{false}, caught_up{false};
  std::atomic<bool> asked_to_end{false};  // the script wants it to leave
  std::atomic<bool> lies{false};          // its next result is wrong
  std::atomic<bool> lied{false};
  Counts counts() const { return group_->counts(); }
  uint64_t history() const { return group_->history(); }
  Generation generation() const { return group_->view().generation; }
  int64_t delivered(int64_t from_collective) const;
  std::map<int64_t, std::string> control_messages() const;
  std::optional<int64_t> last_collective() const;  // the last collective in which it took part

 private:
  void follow_views();
  void live();
  void collectives();
  bool start();
  void lane(int64_t collective, uint64_t state, RandomStream random, bool steps);  // `steps`: true on the step thread
  std::optional<Leaf> computed(int64_t collective, int64_t shard, uint64_t state);
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
  std::map<int64_t, int64_t> delivered_;  // the number of shards delivered in each collective
  std::map<int64_t, std::string> control_messages_;
  uint64_t state_ = 0;
};

// ---- the group and its script --------------------------------------------------------------------------------------

struct Script {
  uint64_t seed = 0;
  int64_t members = 3, collectives = 8;
  // how many members are killed, join, get another share and leave, at random times
  int kills = 0, joins = 0, shares = 0, leaves = 0;
  double audit = 0;        // the part of the shards that two members compute
  int lies = 0;            // how often a member computes a wrong result
  bool slow_views = true;  // true: each view reaches the members at random times
};

class Town {
 public:
  Town(const Script& script, World world);
  ~Town();
  void run();     // runs to the end of the job and checks the results with gtest
  struct Tally {  // counts of events, so that a test can check that enough happened
    int64_t killed = 0, joined = 0, admitted = 0, gave_up = 0, healed = 0, recomputed = 0, views = 0;
    int64_t audited = 0, lied = 0, named = 0;
    void operator+=(const Tally& other);
  };
  const Tally& tally() const { return tally_; }

 private:
  friend class Person;
  // -- for the members
  const Script script_;
  const Job job_;
  std::vector<Expected> expected_;  // the result of each collective
  std::vector<uint64_t> states_;    // state before each collective, and after the last one
  World world_;
  RandomStream random_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  cluster::View view_;  // the newest view
  // for each joiner: the snapshot that it asked for, once there is one
  std::map<MemberId, std::optional<Snapshot>> asked_;
  std::atomic<int64_t> delivered_{0};
  std::atomic<bool> stopping_{false};
  // -- the coordinator
  void publish(const std::string& why);  // the caller holds the mutex
  void remove_the_dead();
  void seat_those_who_caught_up();
  void act();
  void kill_some();
  void add_joiner();
  void change_shares();
  void let_one_go();
  void let_one_lie();
  void hear_of_wrong(MemberId id, const std::string& why);  // any thread
  std::vector<Person*> established_computing();
  bool all_done() const;
  bool is_called_wrong(const Person& liar) const;
  bool ended_by_lie(const Person& person) const;
  bool dissolve_if_a_lie_ended_it();
  void check();
  std::vector<std::unique_ptr<Person>> people_;
  std::vector<std::function<void()>> actions_;
  std::vector<int64_t> moments_;  // when each action happens, counted in shards that all members have delivered
  std::set<MemberId> leaving_;
  std::set<MemberId> wrong_;  // members that others reported; guarded by the mutex
  int64_t next_id_ = 1;
  Tally tally_;
};

}  // namespace sinew::group::simulation
