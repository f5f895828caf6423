#include "group/settle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinew::group {
namespace {

using testing::ElementsAre, testing::Pair;

cluster::View view_of(std::vector<int64_t> computing, std::vector<int64_t> joining = {}) {
  cluster::View view;
  view.generation = Generation(7);
  for (const int64_t id : computing)
    view.members.push_back({.id = MemberId(id), .address = "a", .share = 1, .joining = false, .donor = {}});
  for (const int64_t id : joining) {
    view.members.push_back(
        {.id = MemberId(id), .address = "a", .share = 1, .joining = true, .donor = view.members[0].id});
  }
  return view;
}

ViewChangeReport at(int64_t collective, std::vector<bool> held = {}, uint64_t history = 5, bool before = true) {
  ViewChangeReport report;
  report.collective = collective;
  report.history = history;
  report.computed_before = before;
  report.held = std::move(held);
  return report;
}

TEST(Settle, ContinuesAtTheFirstMissingCollectiveAndKeepsHeldShards) {
  const auto settled = settle(view_of({1, 2, 4}), {{MemberId(1), at(8, {true, true, true})},
                                                   {MemberId(2), at(9, {false, true, false, false})},
                                                   {MemberId(4), at(9, {true, true, false, false})}});
  EXPECT_EQ(settled.collective, 9);
  EXPECT_EQ(settled.giver, MemberId(2));
  ASSERT_EQ(settled.held.size(), 4U);
  EXPECT_EQ(settled.held[0], MemberId(4));
  EXPECT_EQ(settled.held[1], MemberId(2));  // the lowest member that has the result of shard 1
  EXPECT_FALSE(settled.held[2] || settled.held[3]);
  EXPECT_TRUE(settled.fenced.empty() && !settled.conflict);
}

TEST(Settle, IgnoresReportsOfJoiningMembers) {
  auto joiner = at(12);
  joiner.joining = true;
  const auto settled =
      settle(view_of({1, 2}, {3}), {{MemberId(1), at(8)}, {MemberId(2), at(8)}, {MemberId(3), joiner}});
  EXPECT_EQ(settled.collective, 8);
  EXPECT_EQ(settled.giver, MemberId(1));
}

TEST(Settle, FencesAMemberWithAnotherHistoryAndIgnoresItsShards) {
  const auto settled = settle(view_of({1, 2}), {{MemberId(1), at(8, {true}, 6, false)}, {MemberId(2), at(8, {false})}});
  EXPECT_EQ(settled.giver, MemberId(2));  // member 2 computed before, so it knows what the group did
  ASSERT_EQ(settled.fenced.size(), 1U);
  EXPECT_TRUE(settled.fenced.contains(MemberId(1)));
  EXPECT_FALSE(settled.held[0]);
}

TEST(Settle, FencesFormerJoinersWhoseDonorsAreGone) {
  const ViewChangeReport joined = at(6, {}, 5, false);
  const auto alone = settle(view_of({3, 4}), {{MemberId(3), joined}, {MemberId(4), joined}});
  EXPECT_EQ(alone.fenced.size(), 2U);
  EXPECT_TRUE(settle(view_of({1, 3}), {{MemberId(1), at(6)}, {MemberId(3), joined}}).fenced.empty());
  ViewChangeReport born = at(0, {}, 0, false);
  born.origin = Origin{0, 9};
  EXPECT_TRUE(settle(view_of({1, 2}), {{MemberId(1), born}, {MemberId(2), born}}).fenced.empty());
}

// A member whose process was suspended while the group began reads a checkpoint that the others made later. A member
// with an older copy of the checkpoints begins earlier.
TEST(Settle, FencesMembersThatBeganAtAnEarlierStep) {
  auto early = at(0, {true, true}, 0, false), late = at(0, {}, 0, false);
  early.origin = Origin{8, 1};
  late.origin = Origin{12, 2};
  const auto settled = settle(view_of({1, 2, 3}), {{MemberId(1), early}, {MemberId(2), late}, {MemberId(3), early}});
  EXPECT_FALSE(settled.conflict);
  EXPECT_THAT(settled.fenced, ElementsAre(Pair(MemberId(1), "it began at step 8, member 2 at step 12"),
                                          Pair(MemberId(3), "it began at step 8, member 2 at step 12")));
  EXPECT_TRUE(settled.held.empty()) << "what they hold is of another step";
  EXPECT_EQ(settled.giver, MemberId(2));
}

// The group began at step 8, is now at step 11, and has saved step 9. A member that missed the beginning reads that
// checkpoint.
TEST(Settle, FencesAMemberThatDidNotBeginLikeTheGroup) {
  auto group = at(3), late = at(0, {}, 0, false);
  group.origin = Origin{8, 1};
  late.origin = Origin{9, 2};
  const auto settled = settle(view_of({1, 2, 3}), {{MemberId(1), late}, {MemberId(2), group}, {MemberId(3), group}});
  EXPECT_THAT(settled.fenced, ElementsAre(Pair(MemberId(1), "it began at step 9, member 2 at step 8")));
  EXPECT_EQ(settled.collective, 3);
  group.origin.reset();  // as if the group's members had received their state as joiners
  const auto sent = settle(view_of({1, 2}), {{MemberId(1), late}, {MemberId(2), group}});
  EXPECT_THAT(sent.fenced, ElementsAre(Pair(MemberId(1), "the group went on without it")));
}

TEST(Settle, TheErrorNamesMembersWithDifferentStatesOrShards) {
  auto one = at(0), other = at(0);
  one.origin = Origin{8, 1};
  other.origin = Origin{8, 2};
  const auto origins = settle(view_of({3, 9}), {{MemberId(3), one}, {MemberId(9), other}});
  ASSERT_TRUE(origins.conflict);
  EXPECT_EQ(origins.conflict->code, ErrorCode("GROUP_STATES_DIFFER"));
  EXPECT_NE(std::string(origins.conflict->what()).find("member 3 and member 9"), std::string::npos);
  EXPECT_FALSE(origins.conflict->hint.empty());
  const auto shards = settle(view_of({3, 9}), {{MemberId(3), at(4, {true})}, {MemberId(9), at(4, {true, false})}});
  ASSERT_TRUE(shards.conflict);
  EXPECT_EQ(shards.conflict->code, ErrorCode("GROUP_MEMBERS_DIVERGED"));
  EXPECT_NE(std::string(shards.conflict->what()).find("collective 4: it has 2 shards on member 9"), std::string::npos);
}

}  // namespace
}  // namespace sinew::group
