// Thousands of random lives of a group against next_view: joins, deaths, silences, broken links, leavers, speeds, and
// coordinators that are themselves stopped. What must hold after every decision, and that peace follows the noise.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "cluster/cluster.h"
#include "cluster/membership.h"

namespace sinew::cluster {
namespace {

using Phase = Member::Phase;

// One worker: what it does, which the coordinator only learns when it speaks.
struct Worker {
  MemberId id;
  bool dead = false, fenced = false;
  double stopped_until = 0, speaks_at = 0, catches_up_at = 0;
  bool leaving = false;
  double speed = 1;
  bool ever_in_view = false;
  bool blamed = false;  // a link to or from it broke
  std::optional<View> view;
};

class History {
 public:
  explicit History(uint64_t seed) : random_(random_key({7, seed})) {
    options_.wanted = 1 + static_cast<int64_t>(random_.below(5));
    options_.minimum = 1 + static_cast<int64_t>(random_.below(2));
    for (int64_t i = 0; i < options_.wanted; ++i) join();
  }

  void live(double seconds, bool noisy) {
    const double end = now_ + seconds;
    while (now_ < end && !::testing::Test::HasFailure()) {
      now_ += 0.05;
      if (noisy) disturb();
      const size_t workers = workers_.size();
      for (size_t i = 0; i < workers; ++i) act(i);
      decide();
    }
  }

  void expect_peace() {
    const int64_t views = views_;
    live(3, false);
    EXPECT_EQ(views_, views) << "the view still changes: " << last_.why;
    ASSERT_TRUE(state_.view);
    std::set<MemberId> alive, computing;
    for (const Worker& worker : workers_) {
      if (!worker.dead && !worker.fenced) alive.insert(worker.id);
    }
    for (const MemberId id : state_.view->computing()) computing.insert(id);
    EXPECT_EQ(alive, computing);
    EXPECT_EQ(state_.view->members.size(), computing.size());
  }

  // Someone to go on with: all may have died or left.
  void calm() {
    for (Worker& worker : workers_) {
      worker.stopped_until = 0;
      if (worker.leaving && !worker.fenced) worker.dead = true;  // it ended by itself
    }
    while (living() < std::max(options_.minimum, options_.wanted)) join();
  }

  int64_t views() const { return views_; }
  int64_t fresh() const { return fresh_; }

 private:
  void join() {
    Worker worker;
    worker.id = MemberId(next_id_++);
    worker.speaks_at = now_ + 0.25;
    Member member;
    member.id = worker.id;
    member.heard = member.since = now_;
    member.address = "a" + std::to_string(worker.id.value);
    state_.members[worker.id] = member;
    workers_.push_back(worker);
  }

  int64_t living() const {
    return std::count_if(workers_.begin(), workers_.end(), [](const Worker& w) { return !w.dead && !w.fenced; });
  }

  Worker* anyone() {
    std::vector<Worker*> there;
    for (Worker& worker : workers_) {
      if (!worker.dead && !worker.fenced) there.push_back(&worker);
    }
    return there.empty() ? nullptr : there[random_.below(there.size())];
  }

  bool chance(double probability) { return random_.uniform() < probability; }

  void disturb() {
    if (chance(0.03) && living() < 9) join();
    if (chance(0.001)) {
      for (Worker& worker : workers_) worker.dead = true;
    }
    if (chance(0.02)) kill();
    if (chance(0.01)) {
      if (Worker* worker = anyone()) worker->stopped_until = now_ + random_.uniform(0.1, 4);
    }
    if (chance(0.01)) {
      if (Worker* worker = anyone()) worker->leaving = true;
    }
    if (chance(0.01)) break_link();
    if (chance(0.1)) {
      if (Worker* worker = anyone()) worker->speed = chance(0.1) ? 0 : random_.uniform(0.01, 10);
    }
    if (chance(0.004)) {  // the coordinator itself is stopped
      now_ += random_.uniform(0.5, 5);
      state_.awake = now_;
    }
  }

  void kill() {
    Worker* worker = anyone();
    if (worker == nullptr) return;
    worker->dead = true;
    const auto member = state_.members.find(worker->id);
    if (member == state_.members.end()) return;
    if (chance(0.5)) member->second.lost = "killed by signal 9";
    if (chance(0.7)) {
      for (const Worker& other : workers_) {
        if (!other.dead && !other.fenced && chance(0.9))
          member->second.loss_reports[other.id] = {now_, "connection reset"};
      }
    }
  }

  void break_link() {
    Worker* a = anyone();
    Worker* b = anyone();
    if (a == nullptr || a == b || !state_.members.contains(a->id) || !state_.members.contains(b->id)) return;
    if (!state_.view || state_.view->find(a->id) == nullptr || state_.view->find(b->id) == nullptr) return;
    a->blamed = b->blamed = true;
    state_.members[a->id].loss_reports[b->id] = {now_, "connection reset"};
    if (chance(0.7)) state_.members[b->id].loss_reports[a->id] = {now_, "connection reset"};
  }

  // A worker's own course: it hears the newest view, acts by it, and says so.
  void act(size_t at) {
    Worker& worker = workers_[at];
    if (worker.dead || worker.fenced || now_ < worker.stopped_until) return;
    const auto found = state_.members.find(worker.id);
    if (found == state_.members.end()) {  // put out: it begins another life
      worker.fenced = true;
      if (!worker.leaving && living() < 9) join();
      return;
    }
    const ViewMember* view_member = state_.view ? state_.view->find(worker.id) : nullptr;
    const bool reply = view_member != nullptr && (!worker.view || worker.view->generation < state_.view->generation);
    if (!reply && now_ < worker.speaks_at) return;
    worker.speaks_at = now_ + 0.25;
    Member& member = found->second;
    member.heard = now_;
    member.speed = view_member != nullptr && !view_member->joining ? worker.speed : 0;
    if (reply) worker.view = state_.view;
    if (worker.view) {
      member.view = worker.view->generation;
      member.step += 1;
    }
    if (worker.leaving) {
      member.phase = Phase::leaving;
    } else if (view_member != nullptr && view_member->joining) {
      if (member.phase == Phase::waiting) worker.catches_up_at = now_ + random_.uniform(0, 2);
      member.phase = now_ >= worker.catches_up_at ? Phase::caught_up : Phase::joining;
    } else if (view_member != nullptr) {
      member.phase = Phase::computing;
    }
  }

  void decide() {
    last_ = next_view(now_, state_, options_);
    const ClusterState before = last_.view || !last_.fenced.empty() ? state_ : ClusterState();
    EXPECT_FALSE(last_.why.empty());
    if (chance(0.05)) {
      const Decision again = next_view(now_, state_, options_);
      EXPECT_EQ(last_.view, again.view);
      EXPECT_EQ(last_.fenced, again.fenced);
    }
    apply(last_, now_, state_);
    check_out(before);
    if (last_.view) check_view(before);
  }

  void check_out(const ClusterState& before) {
    std::set<MemberId> out;
    for (const auto& [id, why] : last_.fenced) {
      EXPECT_FALSE(why.empty());
      EXPECT_TRUE(out.insert(id).second) << "put out twice: " << id;
    }
    for (const auto& [id, why] : last_.fenced) {
      const auto worker = std::find_if(workers_.begin(), workers_.end(), [&, me = id](auto& w) { return w.id == me; });
      ASSERT_NE(worker, workers_.end());
      if (worker->dead || worker->leaving || worker->blamed || worker->stopped_until > now_ - 1) continue;
      const ViewMember* view_member = before.view ? before.view->find(id) : nullptr;
      ASSERT_TRUE(view_member != nullptr && view_member->joining) << id << " was put out without fault: " << why;
      EXPECT_TRUE(out.contains(view_member->donor)) << why;
    }
  }

  void check_view(const ClusterState& before) {
    const View& view = *last_.view;
    ++views_;
    fresh_ += view.fresh ? 1 : 0;
    EXPECT_GT(view.generation, highest_);
    highest_ = view.generation;
    ASSERT_TRUE(view.leader());
    EXPECT_FALSE(view.find(*view.leader())->joining);
    EXPECT_EQ(view_of_json(to_json(view)), view) << "a view everybody can read";
    std::set<MemberId> out;
    for (const auto& [id, why] : last_.fenced) out.insert(id);
    for (size_t i = 0; i < view.members.size(); ++i) {
      const ViewMember& view_member = view.members[i];
      EXPECT_TRUE(i == 0 || view.members[i - 1].id < view_member.id);
      EXPECT_TRUE(state_.members.contains(view_member.id));
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

  RandomStream random_;
  ClusterOptions options_;
  ClusterState state_;
  std::vector<Worker> workers_;
  Decision last_;
  double now_ = 100;
  int64_t next_id_ = 1, views_ = 0, fresh_ = 0;
  Generation highest_;
};

TEST(History, WhateverHappensEveryDecisionIsSoundAndPeaceFollows) {
  int64_t views = 0, fresh = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    History history(seed);
    history.live(12, true);
    history.calm();
    history.live(15, false);
    history.expect_peace();
    views += history.views();
    fresh += history.fresh();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(views, 15'000);
  EXPECT_GT(fresh, 2'100);  // more than one beginning for some
}

}  // namespace
}  // namespace sinew::cluster
