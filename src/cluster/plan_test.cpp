// Tests the assignment of work for random views: it is balanced, cuts at aligned subtrees, and leaves a shard with the
// member that has its result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "cluster/cluster.h"

namespace sinew::cluster {
namespace {

View view_with(const std::vector<double>& shares) {
  View view{.generation = Generation(1), .members = {}, .why = "test"};
  for (size_t i = 0; i < shares.size(); ++i) {
    view.members.push_back({MemberId(static_cast<int64_t>(2 * i + 1)), "a", shares[i], false, MemberId()});
  }
  return view;
}

View random_view(RandomStream& random) {
  std::vector<double> shares;
  const auto members = 1 + random.below(9);
  for (uint64_t i = 0; i < members; ++i) {
    const auto kind = random.below(6);
    shares.push_back(kind == 0 ? 0 : kind < 3 ? 1 : random.uniform(0.001, 8));
  }
  View view = view_with(shares);
  for (ViewMember& view_member : view.members) {
    if (random.below(5) > 0 || view.computing().size() == 1) continue;
    view_member.joining = true;
    for (const ViewMember& other : view.members) {
      if (!other.joining) view_member.donor = other.id;
    }
  }
  return view;
}

// Returns the exact part of each member, as if shards could be divided.
std::map<MemberId, double> exact_parts(const View& view, double whole) {
  double total = 0;
  std::map<MemberId, double> parts;
  for (const MemberId id : view.computing()) total += view.find(id)->share;
  for (const MemberId id : view.computing()) {
    parts[id] = total > 0 ? whole * view.find(id)->share / total : whole / static_cast<double>(view.computing().size());
  }
  return parts;
}

TEST(PlanShards, EveryShardHasOneOwnerInProportionToTheShares) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStream random(random_key({1, seed}));
    const View view = random_view(random);
    const auto shards = static_cast<int64_t>(random.below(70));
    const auto owners = plan_shards(view, shards);
    ASSERT_EQ(owners.size(), static_cast<size_t>(shards));
    EXPECT_TRUE(std::is_sorted(owners.begin(), owners.end())) << "runs, in the order of ids; seed " << seed;
    for (const auto& [id, exact] : exact_parts(view, static_cast<double>(shards))) {
      const auto count = static_cast<double>(std::count(owners.begin(), owners.end(), id));
      EXPECT_LE(std::abs(count - exact), 1 + 1e-6) << "member " << id << " seed " << seed;
      EXPECT_TRUE(exact > 0 || count == 0) << "seed " << seed;
    }
    for (const MemberId owner : owners) EXPECT_FALSE(view.find(owner)->joining);
    EXPECT_EQ(owners, plan_shards(view, shards));
  }
}

// A collective takes as long as its slowest member. No other assignment of the remaining shards is faster.
TEST(PlanShards, NoMoveOfAShardShortensACollective) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random(random_key({2, seed}));
    View view = random_view(random);
    for (ViewMember& view_member : view.members) view_member.share = std::max(view_member.share, 0.5);
    const auto shards = static_cast<int64_t>(1 + random.below(40));
    const auto owners = plan_shards(view, shards);
    std::map<MemberId, double> count;
    for (const MemberId owner : owners) count[owner] += 1;
    double longest = 0;
    for (const auto& [id, n] : count) longest = std::max(longest, n / view.find(id)->share);
    const auto slowest = std::count_if(count.begin(), count.end(), [&](const auto& one) {
      return one.second / view.find(one.first)->share >= longest * (1 - 1e-9);
    });
    if (slowest > 1) continue;  // moving one shard would not help
    ++tried;
    const auto parts = exact_parts(view, static_cast<double>(shards));
    for (const auto& [from, n] : count) {
      if (n / view.find(from)->share < longest || n < parts.at(from) + 1e-6) continue;
      for (const MemberId to : view.computing()) {
        // plan_shards keeps each member within one shard of its part
        if (to == from || count[to] > parts.at(to) - 1e-6) continue;
        EXPECT_GE((count[to] + 1) / view.find(to)->share, longest * (1 - 1e-6)) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(tried, 500);
}

TEST(PlanShards, CutsWhereSubtreesEnd) {
  const auto cuts = [](const View& view, int64_t shards) {
    std::vector<int64_t> at;
    const auto owners = plan_shards(view, shards);
    for (size_t i = 1; i < owners.size(); ++i) {
      if (owners[i] != owners[i - 1]) at.push_back(static_cast<int64_t>(i));
    }
    return at;
  };
  EXPECT_EQ(cuts(view_with({1, 1}), 8), (std::vector<int64_t>{4}));
  EXPECT_EQ(cuts(view_with({1, 1, 1, 1}), 8), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ(cuts(view_with({3, 1}), 8), (std::vector<int64_t>{6}));
  EXPECT_EQ(cuts(view_with({1, 1, 1, 1, 1, 1}), 8), (std::vector<int64_t>{2, 4, 5, 6, 7}));
}

TEST(PlanShards, HeldShardsStayWithTheirHolder) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random(random_key({3, seed}));
    const View view = random_view(random);
    const auto shards = static_cast<int64_t>(1 + random.below(40));
    std::vector<std::optional<MemberId>> held(static_cast<size_t>(shards));
    for (auto& one : held) {
      if (random.below(2) == 0) one = MemberId(static_cast<int64_t>(random.below(22)));  // some are not in the view
    }
    const auto owners = plan_shards(view, shards, held);
    int64_t open = 0;
    std::map<MemberId, double> counts;
    std::vector<MemberId> run;
    for (size_t i = 0; i < held.size(); ++i) {
      const ViewMember* holder = held[i] ? view.find(*held[i]) : nullptr;
      if (holder != nullptr && !holder->joining) {
        EXPECT_EQ(owners[i], *held[i]);
        continue;
      }
      ++open;
      counts[owners[i]] += 1;
      run.push_back(owners[i]);
    }
    EXPECT_TRUE(std::is_sorted(run.begin(), run.end()));
    for (const auto& [id, exact] : exact_parts(view, static_cast<double>(open))) {
      EXPECT_LE(std::abs(counts[id] - exact), 1 + 1e-6) << "seed " << seed;
    }
  }
}

TEST(PlanShards, MembersGetEqualWorkIfAllSharesAreZero) {
  const auto owners = plan_shards(view_with({0, 0}), 8);
  EXPECT_EQ(std::count(owners.begin(), owners.end(), MemberId(1)), 4);
  EXPECT_EQ(plan_shards(view_with({0, 1}), 2), (std::vector<MemberId>{MemberId(3), MemberId(3)}));
}

TEST(PlanShards, PlansForThousandsOfMembersAndShards) {
  const View view = view_with(std::vector<double>(1000, 1));
  const auto owners = plan_shards(view, 2500);
  EXPECT_EQ(std::set<MemberId>(owners.begin(), owners.end()).size(), 1000u);
}

TEST(PlanSlices, CoverTheRowWithoutHoles) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStream random(random_key({4, seed}));
    const View view = random_view(random);
    const auto n = static_cast<int64_t>(random.below(random.below(2) == 0 ? 10'000 : 3'000'000));
    const auto slices = plan_slices(view, n);
    int64_t at = 0;
    std::map<MemberId, double> floats;
    for (const Slice& slice : slices) {
      EXPECT_EQ(slice.begin, at);
      EXPECT_LT(slice.begin, slice.end);
      EXPECT_EQ(slice.begin % 1024, 0);
      EXPECT_FALSE(view.find(slice.owner)->joining);
      at = slice.end;
      floats[slice.owner] += static_cast<double>(slice.end - slice.begin);
    }
    EXPECT_EQ(at, n);
    EXPECT_TRUE(n > 0 || slices.empty());
    for (const auto& [id, exact] : exact_parts(view, static_cast<double>(n))) {
      EXPECT_LE(std::abs(floats[id] - exact), 2048) << "seed " << seed;
      EXPECT_TRUE(exact > 0 || floats[id] == 0) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sinew::cluster
