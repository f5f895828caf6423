// Tests that the reducer over a group gives the same bits as the reducer of one process.
#include "distribute/group_reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "distribute/small_sums.h"

namespace sinew::distribute {
namespace {

constexpr int64_t kShards = 7;

std::optional<train::Contribution> leaf_of(int64_t collective, int64_t shard) {
  if (shard == 3 && collective % 2 == 1) return std::nullopt;
  RandomStream random(random_key({static_cast<uint64_t>(collective), static_cast<uint64_t>(shard)}));
  train::Contribution leaf;
  for (const int64_t length : {5000, 1, 300}) {
    torch::Tensor gradient = torch::empty({length});
    for (int64_t i = 0; i < length; ++i) gradient.mutable_data_ptr<float>()[i] = static_cast<float>(random.normal());
    leaf.gradients.push_back(length == 1 && shard % 2 == 0 ? torch::Tensor() : gradient);
  }
  leaf.loss = random.normal();
  leaf.weight = 3.5;
  leaf.samples = 4;
  leaf.counts = {4, shard};
  leaf.sums = {random.normal()};
  leaf.scores = {static_cast<float>(shard)};
  leaf.buffers = {torch::full({2}, random.normal(), torch::kFloat64)};
  return leaf;
}

std::vector<torch::Tensor> gradients() {
  return {torch::zeros({5000}), torch::zeros({1}), torch::zeros({300})};
}

train::Reducer::Reduced one_collective(train::Reducer& reducer, int64_t collective,
                                       const std::vector<torch::Tensor>& into) {
  const double audited = collective % 2 == 0 ? 1 : 0.3;
  reducer.begin(kShards, into, "control_message " + std::to_string(collective), std::nullopt,
                audit_of(1, Step(collective), kShards, audited));
  while (const auto task = reducer.next_shard()) {
    auto leaf = leaf_of(collective, task->shard.value);
    task->audit ? reducer.deliver_audit(*task, std::move(leaf)) : reducer.deliver(*task, std::move(leaf));
  }
  reducer.reduce();
  return reducer.reduced();
}

cluster::View view_of(int64_t members, const std::vector<std::string>& addresses) {
  cluster::View view;
  view.generation = Generation(1);
  view.fresh = true;
  for (int64_t i = 0; i < members; ++i) {
    cluster::ViewMember view_member;
    view_member.id = MemberId(i + 1);
    view_member.address = addresses[static_cast<size_t>(i)];
    view.members.push_back(view_member);
  }
  return view;
}

// A group whose members are threads of this process.
struct Town {
  explicit Town(int64_t members) : groups(static_cast<size_t>(members)) {
    for (int64_t i = 0; i < members; ++i) {
      const auto place = static_cast<size_t>(i);
      link::Events events;
      events.on_frame = [this, place](MemberId from, link::Frame frame) {
        groups[place]->on_frame(from, std::move(frame));
      };
      events.on_lost = [](MemberId, const std::string&) {};
      links.push_back(network.join(std::move(events)));
      links.back()->set_identity(MemberId(i + 1));
      addresses.push_back(links.back()->address());
      group::GroupOptions options;
      options.merge = merged;
      groups[place] = std::make_unique<group::Group>(MemberId(i + 1), *links.back(), options, system_clock());
    }
    for (auto& group : groups) group->adopt(view_of(members, addresses));
  }
  ~Town() {
    for (auto& link : links) link.reset();  // a closed link delivers no more events
  }

  link::MemoryNetwork network;
  std::vector<std::unique_ptr<link::Links>> links;
  std::vector<std::string> addresses;
  std::vector<std::unique_ptr<group::Group>> groups;
};

void expect_same(const train::Reducer::Reduced& a, const train::Reducer::Reduced& b) {
  EXPECT_EQ(a.present, b.present);
  EXPECT_EQ(a.control_message, b.control_message);
  EXPECT_EQ(a.sums.loss, b.sums.loss);
  EXPECT_EQ(a.sums.weight, b.sums.weight);
  EXPECT_EQ(a.sums.samples, b.sums.samples);
  EXPECT_EQ(a.sums.counts, b.sums.counts);
  EXPECT_EQ(a.sums.sums, b.sums.sums);
  EXPECT_EQ(a.sums.scores, b.sums.scores);
  ASSERT_EQ(a.sums.buffers.size(), b.sums.buffers.size());
  EXPECT_TRUE(torch::equal(a.sums.buffers[0], b.sums.buffers[0]));
}

// Time passes only while something sleeps.
class SleptClock final : public Clock {
 public:
  double monotonic_seconds() const override { return seconds; }
  double wall_seconds() const override { return seconds; }
  void sleep_seconds(double duration) override { seconds += duration; }
  double seconds = 0;
};

TEST(GroupReducer, GivesTheSameBitsAsOneProcess) {
  for (const int64_t members : {1, 2, 3, 5, 9}) {
    Town town(members);
    std::atomic<int64_t> audited = 0;
    std::vector<std::thread> threads;
    for (int64_t m = 0; m < members; ++m) {
      threads.emplace_back([&, m] {
        const auto local = train::make_local_reducer();
        group::Group& group = *town.groups[static_cast<size_t>(m)];
        group.start_at(0, {0, 42});
        GroupReducer reducer(group, 1, system_clock());
        for (int64_t collective = 0; collective < 6; ++collective) {
          const auto ours = gradients(), expected = gradients();
          const auto reduced = one_collective(reducer, collective, ours);
          expect_same(reduced, one_collective(*local, collective, expected));
          for (size_t p = 0; p < ours.size(); ++p)
            EXPECT_TRUE(torch::equal(ours[p], expected[p])) << collective << " " << p;
        }
        EXPECT_GE(reducer.speed(), 0);
        audited += group.counts().audited;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(audited > 3 * kShards - 1, members > 1) << members;
  }
}

// Otherwise a member that was fenced meanwhile would learn of it only after the sleep.
TEST(GroupReducer, AWorkerThatIsSlowedDownSleepsNotLongAfterItWasSuspended) {
  Town town(1);
  SleptClock clock;
  group::Group& group = *town.groups[0];
  group.start_at(0, {0, 42});
  GroupReducer of_group(group, 20, clock);
  train::Reducer& reducer = of_group;
  reducer.begin(kShards, {}, "");
  double suspended = 0.001;
  while (const auto task = reducer.next_shard()) {
    clock.seconds += suspended;
    const double before = clock.seconds;
    reducer.deliver(*task, train::Contribution());
    EXPECT_NEAR(clock.seconds - before, std::min(19 * suspended, 2.0), 1e-9) << suspended;
    suspended *= 10;
  }
  reducer.reduce();
}

// Only some members add the two shards, and all of them must find out: the step is then computed again and audited.
TEST(GroupReducer, AllMembersLearnThatAnIntegerBufferChangedDifferently) {
  for (const int64_t wrong : {-1, 0, 4}) {
    Town town(3);
    std::atomic<int> conflicts = 0;
    std::vector<std::thread> threads;
    for (auto& group : town.groups) {
      threads.emplace_back([&, group = group.get()] {
        group->start_at(0, {0, 42});
        GroupReducer of_group(*group, 1, system_clock());
        train::Reducer& reducer = of_group;
        reducer.begin(kShards, {}, "");
        while (const auto task = reducer.next_shard()) {
          train::Contribution leaf;
          leaf.buffers = {torch::tensor(task->shard.value == wrong ? int64_t{2} : int64_t{1})};
          reducer.deliver(*task, std::move(leaf));
        }
        reducer.reduce();
        conflicts += reducer.reduced().sums.buffers_conflict ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(conflicts, wrong < 0 ? 0 : 3) << wrong;
  }
}

}  // namespace
}  // namespace sinew::distribute
