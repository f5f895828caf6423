// The reducer over a group gives the bits of the reducer of one process.
#include "distribute/group_reducer.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "distribute/small_sums.h"

namespace sinew::distribute {
namespace {

constexpr int64_t kShards = 7;

std::optional<train::Contribution> leaf_of(int64_t round, int64_t shard) {
  if (shard == 3 && round % 2 == 1) return std::nullopt;
  RandomStream random(random_key({static_cast<uint64_t>(round), static_cast<uint64_t>(shard)}));
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

train::Reducer::Root one_round(train::Reducer& reducer, int64_t round, const std::vector<torch::Tensor>& into) {
  reducer.begin(kShards, into, "note " + std::to_string(round));
  while (const auto shard = reducer.next_shard()) reducer.deliver(*shard, leaf_of(round, shard->value));
  reducer.reduce();
  return reducer.root();
}

cluster::View view_of(int64_t members, const std::vector<std::string>& addresses) {
  cluster::View view;
  view.generation = Generation(1);
  view.fresh = true;
  for (int64_t i = 0; i < members; ++i) {
    cluster::Seat seat;
    seat.id = MemberId(i + 1);
    seat.address = addresses[static_cast<size_t>(i)];
    view.seats.push_back(seat);
  }
  return view;
}

// A group of threads, each one member.
struct Seats {
  explicit Seats(int64_t members) : groups(static_cast<size_t>(members)) {
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
  ~Seats() {
    for (auto& link : links) link.reset();  // no event comes after this
  }

  link::MemoryNetwork network;
  std::vector<std::unique_ptr<link::Links>> links;
  std::vector<std::string> addresses;
  std::vector<std::unique_ptr<group::Group>> groups;
};

void expect_same(const train::Reducer::Root& a, const train::Reducer::Root& b) {
  EXPECT_EQ(a.present, b.present);
  EXPECT_EQ(a.note, b.note);
  EXPECT_EQ(a.sums.loss, b.sums.loss);
  EXPECT_EQ(a.sums.weight, b.sums.weight);
  EXPECT_EQ(a.sums.samples, b.sums.samples);
  EXPECT_EQ(a.sums.counts, b.sums.counts);
  EXPECT_EQ(a.sums.sums, b.sums.sums);
  EXPECT_EQ(a.sums.scores, b.sums.scores);
  ASSERT_EQ(a.sums.buffers.size(), b.sums.buffers.size());
  EXPECT_TRUE(torch::equal(a.sums.buffers[0], b.sums.buffers[0]));
}

TEST(GroupReducer, GivesTheBitsOfOneProcess) {
  for (const int64_t members : {1, 2, 3, 5, 9}) {
    Seats seats(members);
    std::vector<std::thread> threads;
    for (int64_t m = 0; m < members; ++m) {
      threads.emplace_back([&, m] {
        const auto local = train::make_local_reducer();
        group::Group& group = *seats.groups[static_cast<size_t>(m)];
        group.start_at(0, {0, 42});
        GroupReducer reducer(group, 1, system_clock());
        for (int64_t round = 0; round < 6; ++round) {
          const auto ours = gradients(), expected = gradients();
          const auto root = one_round(reducer, round, ours);
          expect_same(root, one_round(*local, round, expected));
          for (size_t p = 0; p < ours.size(); ++p) EXPECT_TRUE(torch::equal(ours[p], expected[p])) << round << " " << p;
        }
        EXPECT_GE(reducer.speed(), 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace sinew::distribute
