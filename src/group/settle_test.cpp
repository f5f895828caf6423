#include "group/settle.h"

#include <gtest/gtest.h>

namespace sinew::group {
namespace {

cluster::View view_of(std::vector<int64_t> computing, std::vector<int64_t> joining = {}) {
  cluster::View view;
  view.generation = Generation(7);
  for (const int64_t id : computing)
    view.seats.push_back({.id = MemberId(id), .address = "a", .share = 1, .joining = false, .donor = {}});
  for (const int64_t id : joining) {
    view.seats.push_back({.id = MemberId(id), .address = "a", .share = 1, .joining = true, .donor = view.seats[0].id});
  }
  return view;
}

Here at(int64_t round, std::vector<bool> held = {}, uint64_t history = 5, bool before = true) {
  Here here;
  here.round = round;
  here.history = history;
  here.computed_before = before;
  here.held = std::move(held);
  return here;
}

TEST(Settle, GoesOnAtTheFirstRoundNobodyHasAndKeepsWhatIsHeld) {
  const auto settled = settle(view_of({1, 2, 4}), {{MemberId(1), at(8, {true, true, true})},
                                                   {MemberId(2), at(9, {false, true, false, false})},
                                                   {MemberId(4), at(9, {true, true, false, false})}});
  EXPECT_EQ(settled.round, 9);
  EXPECT_EQ(settled.giver, MemberId(2));
  ASSERT_EQ(settled.held.size(), 4U);
  EXPECT_EQ(settled.held[0], MemberId(4));
  EXPECT_EQ(settled.held[1], MemberId(2));  // the lowest of those who have it
  EXPECT_FALSE(settled.held[2] || settled.held[3]);
  EXPECT_TRUE(settled.out.empty() && settled.conflict.empty());
}

TEST(Settle, AJoiningSeatHasNoSay) {
  auto joiner = at(12);
  joiner.joining = true;
  const auto settled =
      settle(view_of({1, 2}, {3}), {{MemberId(1), at(8)}, {MemberId(2), at(8)}, {MemberId(3), joiner}});
  EXPECT_EQ(settled.round, 8);
  EXPECT_EQ(settled.giver, MemberId(1));
}

TEST(Settle, WhoFollowedAnotherNoteGoesAndWhatItHoldsDoesNotCount) {
  const auto settled = settle(view_of({1, 2}), {{MemberId(1), at(8, {true}, 6, false)}, {MemberId(2), at(8, {false})}});
  EXPECT_EQ(settled.giver, MemberId(2));  // it computed before: what it knows is what the group did
  ASSERT_EQ(settled.out.size(), 1U);
  EXPECT_TRUE(settled.out.contains(MemberId(1)));
  EXPECT_FALSE(settled.held[0]);
}

TEST(Settle, WhoWasSentItsStateDoesNotGoOnAlone) {
  const Here joined = at(6, {}, 5, false);
  const auto alone = settle(view_of({3, 4}), {{MemberId(3), joined}, {MemberId(4), joined}});
  EXPECT_EQ(alone.out.size(), 2U);
  EXPECT_TRUE(settle(view_of({1, 3}), {{MemberId(1), at(6)}, {MemberId(3), joined}}).out.empty());
  Here born = at(0, {}, 0, false);
  born.origin = 9;
  EXPECT_TRUE(settle(view_of({1, 2}), {{MemberId(1), born}, {MemberId(2), born}}).out.empty());
}

TEST(Settle, MembersOfDifferentStatesOrRoundsAreNamed) {
  auto one = at(0), other = at(0);
  one.origin = 1;
  other.origin = 2;
  const auto origins = settle(view_of({3, 9}), {{MemberId(3), one}, {MemberId(9), other}});
  EXPECT_EQ(origins.conflict, "member 3 and member 9 begin with different states");
  EXPECT_FALSE(origins.hint.empty());
  const auto shards = settle(view_of({3, 9}), {{MemberId(3), at(4, {true})}, {MemberId(9), at(4, {true, false})}});
  EXPECT_EQ(shards.conflict, "member 9 takes round 4 to have 2 shards, others 1");
}

}  // namespace
}  // namespace sinew::group
