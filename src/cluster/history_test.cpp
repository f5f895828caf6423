// Runs thousands of random histories of a group against next_view: members join, die, fall silent, lose links, leave
// and change their speed, and the coordinator itself is suspended. The test checks every decision, and that the view
// stops changing once the disturbances end.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "cluster/cluster.h"
#include "cluster/membership.h"

namespace sinew::cluster {
namespace {

using Phase = Member::Phase;

// One worker as it really is. The coordinator learns of it only from its heartbeats.
struct Worker {
  MemberId id;
  bool dead = false, fenced = false;
  double stopped_until = 0, speaks_at = 0, catches_up_at = 0;
  bool leaving = false;
  double speed = 1;
  bool ever_in_view = false;
  bool blamed = false;  // true: a link to this member, or from it, broke
  std::optional<View> view;
};

// Simulates the workers of a group with random disturbances, and holds the coordinator's state of the group.
class Group {
 public:
  explicit Group(uint64_t seed) : has_guests_(seed % 2 == 1), random_(random_key({7, seed})) {
    options.wanted = 1 + static_cast<int64_t>(random_.below(5));
    options.minimum = 1 + static_cast<int64_t>(random_.below(2));
    for (int64_t i = 0; i < options.wanted; ++i) join();
  }

  // Advances the time to the next decision. If `noisy`, random disturbances may happen. Then each worker acts.
  void pass(bool noisy) {
    now += 0.05;
    if (noisy) disturb();
    const size_t there = workers.size();
    for (size_t i = 0; i < there; ++i) act(i);
  }

  // Ends the disturbances: suspended workers continue, leaving workers end, and new ones join if too few are left.
  void calm() {
    for (Worker& worker : workers) {
      worker.stopped_until = 0;
      if (worker.leaving && !worker.fenced) worker.dead = true;  // a leaving worker ends when the disturbances end
    }
    while (living() < std::max(options.minimum, options.wanted) || !owns()) join();
  }

  // Returns whether a member with the run's secret lives: guests wait for one.
  bool owns() const {
    return std::ranges::any_of(
        workers, [&](const Worker& worker) { return !worker.dead && !worker.fenced && !is_guest(worker.id); });
  }
  bool is_guest(MemberId id) const { return has_guests_ && id.value % 3 == 1; }

  bool chance(double probability) { return random_.uniform() < probability; }

  ClusterOptions options;
  ClusterState state;
  std::vector<Worker> workers;
  double now = 100;

 private:
  void join() {
    Worker worker;
    worker.id = MemberId(next_id_++);
    worker.speaks_at = now + 0.25;
    Member member;
    member.id = worker.id;
    member.heard = member.since = now;
    member.address = "a" + std::to_string(worker.id.value);
    member.guest = is_guest(worker.id);
    state.members[worker.id] = member;
    workers.push_back(worker);
  }

  int64_t living() const {
    return std::count_if(workers.begin(), workers.end(), [](const Worker& w) { return !w.dead && !w.fenced; });
  }

  Worker* anyone() {
    std::vector<Worker*> there;
    for (Worker& worker : workers) {
      if (!worker.dead && !worker.fenced) there.push_back(&worker);
    }
    return there.empty() ? nullptr : there[random_.below(there.size())];
  }

  void disturb() {
    if (chance(0.03) && living() < 9) join();
    if (chance(0.001)) {
      for (Worker& worker : workers) worker.dead = true;
    }
    if (chance(0.02)) kill();
    if (chance(0.01)) {
      if (Worker* worker = anyone()) worker->stopped_until = now + random_.uniform(0.1, 4);
    }
    if (chance(0.01)) {
      if (Worker* worker = anyone()) worker->leaving = true;
    }
    if (chance(0.01)) break_link();
    if (chance(0.1)) {
      if (Worker* worker = anyone()) worker->speed = chance(0.1) ? 0 : random_.uniform(0.01, 10);
    }
    if (chance(0.004)) {  // the coordinator itself is suspended
      now += random_.uniform(0.5, 5);
      state.awake = now;
    }
  }

  void kill() {
    Worker* worker = anyone();
    if (worker == nullptr) return;
    worker->dead = true;
    const auto member = state.members.find(worker->id);
    if (member == state.members.end()) return;
    if (chance(0.5)) member->second.lost = "killed by signal 9";
    if (chance(0.7)) {
      for (const Worker& other : workers) {
        if (!other.dead && !other.fenced && chance(0.9))
          member->second.loss_reports[other.id] = {now, "connection reset"};
      }
    }
  }

  void break_link() {
    Worker* a = anyone();
    Worker* b = anyone();
    if (a == nullptr || a == b || !state.members.contains(a->id) || !state.members.contains(b->id)) return;
    if (!state.view || state.view->find(a->id) == nullptr || state.view->find(b->id) == nullptr) return;
    a->blamed = b->blamed = true;
    state.members[a->id].loss_reports[b->id] = {now, "connection reset"};
    if (chance(0.7)) state.members[b->id].loss_reports[a->id] = {now, "connection reset"};
  }

  // Lets a worker act: it receives the newest view, acts by it, and reports that in a heartbeat.
  void act(size_t at) {
    Worker& worker = workers[at];
    if (worker.dead || worker.fenced || now < worker.stopped_until) return;
    const auto found = state.members.find(worker.id);
    if (found == state.members.end()) {  // the group fenced this worker, and a new member replaces it
      worker.fenced = true;
      if (!worker.leaving && living() < 9) join();
      return;
    }
    const ViewMember* view_member = state.view ? state.view->find(worker.id) : nullptr;
    const bool reply = view_member != nullptr && (!worker.view || worker.view->generation < state.view->generation);
    if (!reply && now < worker.speaks_at) return;
    worker.speaks_at = now + 0.25;
    Member& member = found->second;
    member.heard = now;
    member.speed = view_member != nullptr && !view_member->joining ? worker.speed : 0;
    if (reply) worker.view = state.view;
    if (worker.view) {
      member.view = worker.view->generation;
      member.step += 1;
    }
    if (worker.leaving) {
      member.phase = Phase::leaving;
    } else if (view_member != nullptr && view_member->joining) {
      if (member.phase == Phase::waiting) worker.catches_up_at = now + random_.uniform(0, 2);
      member.phase = now >= worker.catches_up_at ? Phase::caught_up : Phase::joining;
    } else if (view_member != nullptr) {
      member.phase = Phase::computing;
    }
  }

  const bool has_guests_;
  RandomStream random_;
  int64_t next_id_ = 1;
};

// Checks the rules that every decision obeys.
class Soundness {
 public:
  // `before` is the state that the decision was made from; the group has the state after it.
  void check(const Decision& decision, const ClusterState& before, const Group& group) {
    EXPECT_FALSE(decision.why.empty());
    check_out(decision, before, group);
    if (decision.view) check_view(decision, before, group);
  }

  int64_t views() const { return views_; }
  int64_t fresh() const { return fresh_; }

 private:
  static void check_out(const Decision& decision, const ClusterState& before, const Group& group) {
    std::set<MemberId> out;
    for (const auto& [id, why] : decision.fenced)
      EXPECT_TRUE(!why.empty() && out.insert(id).second) << "fenced twice: " << id;
    for (const auto& [id, why] : decision.fenced) {
      const auto worker =
          std::find_if(group.workers.begin(), group.workers.end(), [&, me = id](auto& w) { return w.id == me; });
      ASSERT_NE(worker, group.workers.end());
      if (worker->dead || worker->leaving || worker->blamed || worker->stopped_until > group.now - 1) continue;
      if (before.members.at(id).guest && before.view && before.view->leader() == id) continue;
      // a member with this id would take the lead from the leader
      if (group.state.view && id < *group.state.view->leader()) continue;
      const ViewMember* view_member = before.view ? before.view->find(id) : nullptr;
      ASSERT_TRUE(view_member != nullptr && view_member->joining) << id << " was put out without fault: " << why;
      EXPECT_TRUE(out.contains(view_member->donor)) << why;
    }
  }

  void check_view(const Decision& decision, const ClusterState& before, const Group& group) {
    const View& view = *decision.view;
    ++views_;
    fresh_ += view.fresh ? 1 : 0;
    EXPECT_GT(view.generation, highest_);
    highest_ = view.generation;
    ASSERT_TRUE(view.leader() && !view.find(*view.leader())->joining);
    EXPECT_EQ(view_of_json(to_json(view)), view) << "a view everybody can read";
    std::set<MemberId> out;
    for (const auto& [id, why] : decision.fenced) out.insert(id);
    for (size_t i = 0; i < view.members.size(); ++i) {
      const ViewMember& view_member = view.members[i];
      EXPECT_TRUE(i == 0 || view.members[i - 1].id < view_member.id);
      EXPECT_TRUE(group.state.members.contains(view_member.id));
      EXPECT_FALSE(out.contains(view_member.id));
      const Member& member = before.members.at(view_member.id);
      const ViewMember* old = before.view ? before.view->find(view_member.id) : nullptr;
      const bool has_state = old != nullptr && (!old->joining || member.phase == Phase::caught_up);
      EXPECT_EQ(view_member.joining || view.fresh, !has_state) << "member " << view_member.id << ": " << view.why;
    }
    if (view.fresh && before.view) {
      for (const MemberId id : before.view->computing()) EXPECT_TRUE(out.contains(id)) << "its state is thrown away";
    }
    if (before.view) {
      const bool stays = view.leader() == before.view->leader();
      EXPECT_TRUE(stays || view.find(*before.view->leader()) == nullptr) << view.why;
      if (!stays && before.members.at(*view.leader()).guest) {
        for (const MemberId id : view.computing()) EXPECT_TRUE(before.members.at(id).guest) << "it should lead: " << id;
      }
      for (const ViewMember& view_member : before.view->members) {
        EXPECT_TRUE(view.find(view_member.id) != nullptr || out.contains(view_member.id))
            << "gone without a reason: " << view_member.id;
      }
    }
    check_plan(view);
  }

  static void check_plan(const View& view) {
    double total = 0;
    for (const MemberId id : view.computing()) total += view.find(id)->share;
    for (const MemberId owner : plan_shards(view, 11)) {
      const ViewMember* view_member = view.find(owner);
      ASSERT_NE(view_member, nullptr);
      EXPECT_FALSE(view_member->joining);
      EXPECT_TRUE(view_member->share > 0 || total == 0);
    }
  }

  int64_t views_ = 0, fresh_ = 0;
  Generation highest_;
};

// One history of a group. The coordinator decides again and again, and each decision is checked.
class History {
 public:
  explicit History(uint64_t seed) : group_(seed) {}

  void live(double seconds, bool noisy) {
    const double end = group_.now + seconds;
    while (group_.now < end && !::testing::Test::HasFailure()) {
      group_.pass(noisy);
      decide();
    }
  }

  void calm() { group_.calm(); }

  void expect_peace() {
    const int64_t views = soundness_.views();
    live(3, false);
    EXPECT_EQ(soundness_.views(), views) << "the view still changes: " << last_.why;
    ASSERT_TRUE(group_.state.view);
    std::set<MemberId> alive, computing;
    for (const Worker& worker : group_.workers) {
      if (!worker.dead && !worker.fenced) alive.insert(worker.id);
    }
    for (const MemberId id : group_.state.view->computing()) computing.insert(id);
    EXPECT_EQ(alive, computing);
    const auto is_guest = [&](MemberId id) { return group_.state.members.at(id).guest; };
    EXPECT_EQ(is_guest(*group_.state.view->leader()), std::ranges::all_of(computing, is_guest));
    EXPECT_EQ(group_.state.view->members.size(), computing.size());
  }

  const Soundness& soundness() const { return soundness_; }

 private:
  void decide() {
    last_ = next_view(group_.now, group_.state, group_.options);
    const ClusterState before = last_.view || !last_.fenced.empty() ? group_.state : ClusterState();
    if (group_.chance(0.05)) {
      const Decision again = next_view(group_.now, group_.state, group_.options);
      EXPECT_EQ(last_.view, again.view);
      EXPECT_EQ(last_.fenced, again.fenced);
    }
    apply(last_, group_.now, group_.state);
    soundness_.check(last_, before, group_);
  }

  Group group_;
  Decision last_;
  Soundness soundness_;
};

TEST(History, EveryDecisionIsSoundAndTheViewSettles) {
  int64_t views = 0, fresh = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    History history(seed);
    history.live(12, true);
    history.calm();
    history.live(15, false);
    history.expect_peace();
    views += history.soundness().views();
    fresh += history.soundness().fresh();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(views, 15'000);
  EXPECT_GT(fresh, 2'100);  // some groups begin afresh more than once
}

}  // namespace
}  // namespace sinew::cluster
