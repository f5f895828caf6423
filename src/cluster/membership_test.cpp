// Tests single cases of next_view, with the reason that each view gives.
#include "cluster/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace sinew::cluster {
namespace {

using Phase = Member::Phase;
using ::testing::HasSubstr;

constexpr double kNow = 1000;

// A group that computes by view 10. All heartbeats came at kNow.
struct MemberGroup {
  ClusterState state;
  ClusterOptions options;

  explicit MemberGroup(const std::vector<int64_t>& ids) {
    View view{.generation = Generation(10), .members = {}, .why = "before"};
    for (const int64_t id : ids) {
      add(id, Phase::computing).view = Generation(10);
      view.members.push_back({MemberId(id), "a", 1, false, MemberId()});
    }
    if (!ids.empty()) state.view = view;
    options.wanted = static_cast<int64_t>(ids.size());
  }

  Member& add(int64_t id, Phase phase = Phase::waiting) {
    Member& member = state.members[MemberId(id)];
    member.id = MemberId(id);
    member.address = "a";
    member.phase = phase;
    member.step = phase == Phase::computing ? 412 : 0;
    member.heard = member.since = kNow;
    return member;
  }
  Member& operator[](int64_t id) { return state.members.at(MemberId(id)); }
  void seat_joining(int64_t id, int64_t donor) {
    add(id, Phase::joining).view = Generation(10);
    state.view->members.push_back({MemberId(id), "a", 1, true, MemberId(donor)});
  }
  void report(int64_t reporter, int64_t reported, double at) {
    (*this)[reported].loss_reports[MemberId(reporter)] = {at, "connection reset"};
  }
  Decision decide(double now = kNow) const { return next_view(now, state, options); }
  std::vector<int64_t> fenced(double now = kNow) const {
    std::vector<int64_t> ids;
    for (const auto& [id, why] : decide(now).fenced) ids.push_back(id.value);
    return ids;
  }
};

using Ids = std::vector<int64_t>;

TEST(NextView, NothingChangesWithoutAReason) {
  const MemberGroup group({1, 2, 3});
  EXPECT_FALSE(group.decide().view);
  EXPECT_EQ(group.decide().why, "nothing changed");
}

TEST(NextView, NamesTheMembersThatTakeOverTheWork) {
  MemberGroup group({1, 3, 4});
  group[3].lost = "connection reset by 127.0.0.1:4711";
  const Decision decision = group.decide();
  ASSERT_TRUE(decision.view);
  EXPECT_EQ(decision.why, "member 3 lost at step 412: connection reset by 127.0.0.1:4711; its work moves to 1 and 4");
  EXPECT_EQ(decision.view->generation, Generation(11));
  EXPECT_EQ(group.fenced(), Ids{3});
}

TEST(NextView, OneViewContainsAllKnownChanges) {
  MemberGroup group({1, 2, 3, 4});
  group[2].lost = group[3].lost = "killed";
  group.add(7);
  group.add(8);
  const Decision decision = group.decide();
  EXPECT_EQ(decision.why,
            "member 2 lost at step 412: killed; its work moves to 1 and 4; "
            "member 3 lost at step 412: killed; its work moves to 1 and 4; "
            "member 7 joins; its state comes from 4; member 8 joins; its state comes from 4");
  EXPECT_EQ(decision.view->members.size(), 4u);
}

TEST(NextView, SpreadsJoinersOverDonorsButNotTheLeader) {
  MemberGroup group({1, 2, 3});
  for (const int64_t id : {5, 6, 7}) group.add(id);
  const View view = *group.decide().view;
  EXPECT_EQ(view.find(MemberId(5))->donor, MemberId(2));
  EXPECT_EQ(view.find(MemberId(6))->donor, MemberId(3));
  EXPECT_EQ(view.find(MemberId(7))->donor, MemberId(2));
}

TEST(NextView, AJoinerComputesOnceItHasCaughtUp) {
  MemberGroup group({1, 2});
  group.seat_joining(5, 2);
  EXPECT_FALSE(group.decide().view);
  group[5].phase = Phase::caught_up;
  EXPECT_EQ(group.decide().why, "member 5 computes from here on");
  EXPECT_EQ(group.decide().view->computing().size(), 3u);
}

TEST(NextView, FencesAJoinerWhoseDonorIsGone) {
  MemberGroup group({1, 2});
  group.seat_joining(5, 2);
  group[2].lost = "killed";
  EXPECT_EQ(group.fenced(), (Ids{2, 5}));
  EXPECT_THAT(group.decide().why,
              HasSubstr("member 5 begins again: its state was to come from 2, which is no longer in the group"));
}

TEST(NextView, ACaughtUpJoinerKeepsTheStateWhenAllOthersDie) {
  MemberGroup group({1, 2});
  group.seat_joining(5, 2);
  group[1].lost = group[2].lost = "killed";
  EXPECT_FALSE(group.decide().view);
  EXPECT_EQ(group.fenced(), (Ids{1, 2, 5}));
  group[5].phase = Phase::caught_up;
  ASSERT_TRUE(group.decide().view);
  EXPECT_EQ(group.decide().view->leader(), MemberId(5));
  EXPECT_FALSE(group.decide().view->fresh);
  EXPECT_EQ(group.fenced(), (Ids{1, 2}));
}

// The leader is lost while 3 and 7 join; 7 computes first and leads.
TEST(NextView, AJoinerDoesNotTakeTheLeadFromALivingMember) {
  MemberGroup group({7, 8});
  group.seat_joining(3, 8);
  std::ranges::rotate(group.state.view->members, group.state.view->members.end() - 1);  // a view is in order of the ids
  EXPECT_EQ(group.fenced(), Ids{3});
  ASSERT_TRUE(group.decide().view);
  EXPECT_EQ(group.decide().view->leader(), MemberId(7));
  EXPECT_THAT(group.decide().why, HasSubstr("member 3 begins again: its id is lower than that of the leader, 7"));
  group[3].phase = Phase::caught_up;
  EXPECT_EQ(group.decide().view->leader(), MemberId(7));
}

// The coordinator that gave id 3 died before it had put the member into a view.
TEST(NextView, AMemberThatWaitedUnderAnEarlierCoordinatorDoesNotTakeTheLead) {
  MemberGroup group({7, 8});
  group.add(3);
  group.add(9);
  EXPECT_EQ(group.fenced(), Ids{3});
  EXPECT_EQ(group.decide().why, "member 9 joins; its state comes from 8");
}

TEST(NextView, WaitingMembersBeginAfreshWhenNoMemberHasTheState) {
  MemberGroup group({1, 2});
  group[1].lost = group[2].lost = "killed";
  const Decision end = group.decide();
  EXPECT_FALSE(end.view);
  apply(end, kNow, group.state);
  EXPECT_FALSE(group.state.view);
  group.add(5);
  EXPECT_EQ(group.decide().why, "1 of 2 members are here; the others are waited for, 3.0 s more");
  group.add(6);
  ASSERT_TRUE(group.decide().view);
  EXPECT_TRUE(group.decide().view->fresh);
  EXPECT_EQ(group.decide().view->generation, Generation(11));
  EXPECT_EQ(group.decide().why, "members 5 and 6 begin");
}

TEST(NextView, TheFirstViewWaitsForWantedThenBeginsWithMinimum) {
  MemberGroup group({});
  group.options.wanted = 4;
  group.options.minimum = 2;
  group.add(1);
  EXPECT_EQ(group.decide(kNow + 0.9).why, "1 of 4 members are here; at least 2 are needed to begin");
  EXPECT_FALSE(group.decide(kNow + 0.9).view);
  group.add(2);
  EXPECT_FALSE(group.decide(kNow + 0.9).view);
  group[1].heard = group[2].heard = kNow + 3;
  EXPECT_EQ(group.decide(kNow + 3).why, "members 1 and 2 begin: the others did not come in 3.0 s");
  group[2].heard = kNow;  // it has been silent for too long, so it does not count
  EXPECT_FALSE(group.decide(kNow + 3).view);
  EXPECT_EQ(group.fenced(kNow + 3), Ids{2});
}

TEST(NextView, SilenceCountsOnlyWhileTheCoordinatorRuns) {
  MemberGroup group({1, 2, 3});
  group[1].heard = group[3].heard = kNow + 1.2;
  EXPECT_EQ(group.fenced(kNow + 1.2), Ids{2});
  EXPECT_THAT(group.decide(kNow + 1.2).why, HasSubstr("member 2 lost at step 412: silent for 1.2 s"));
  group.state.awake = kNow + 0.5;
  EXPECT_EQ(group.fenced(kNow + 1.2), Ids{});
  EXPECT_EQ(group.fenced(kNow + 1.6), Ids{2});
}

TEST(NextView, WaitsLongerForTheLastMembersWithTheState) {
  MemberGroup group({1, 2});
  group.add(5).heard = kNow + 30;
  group[1].phase = group[2].phase = Phase::computing;
  EXPECT_EQ(group.fenced(kNow + 5), Ids{}) << "both are silent, and nobody else has the state";
  EXPECT_EQ(group.fenced(kNow + 11), (Ids{1, 2}));
  group[2].heard = kNow + 4.5;
  EXPECT_EQ(group.fenced(kNow + 5), Ids{1});
}

TEST(NextView, ALeaverHandsItsWorkOverThenGoes) {
  MemberGroup group({1, 2, 3});
  group[2].phase = Phase::leaving;
  Decision decision = group.decide();
  EXPECT_EQ(decision.why, "member 2 leaves; its work moves to 1 and 3");
  EXPECT_EQ(decision.view->find(MemberId(2))->share, 0);
  apply(decision, kNow, group.state);
  EXPECT_FALSE(group.decide().view) << "it does not act by that view yet";
  group[2].view = Generation(11);
  EXPECT_FALSE(group.decide().view) << "neither of the others is known to have computed";
  EXPECT_EQ(group.decide(kNow + 0.9).why, "nothing changed");
  group.options.silence_seconds = 100;
  EXPECT_EQ(group.decide(kNow + 2).why, "member 2 has left") << "a step of theirs may take long";
  group[3].speed = 10;
  EXPECT_EQ(group.decide().why, "member 2 has left");
  EXPECT_EQ(group.fenced(), Ids{2});
}

TEST(NextView, ALeaverStaysUntilAnotherMemberComputes) {
  MemberGroup alone({1});
  alone[1].phase = Phase::leaving;
  EXPECT_FALSE(alone.decide().view);
  alone.add(5);
  EXPECT_EQ(alone.decide().why, "member 5 joins; its state comes from 1");
}

TEST(NextView, TheLeaderLeavesLast) {
  MemberGroup group({1, 2, 3});
  group[1].phase = group[2].phase = group[3].phase = Phase::leaving;
  Decision decision = group.decide();
  EXPECT_EQ(decision.why, "member 2 leaves; its work moves to 1; member 3 leaves; its work moves to 1");
  EXPECT_GT(decision.view->find(MemberId(1))->share, 0);
  apply(decision, kNow, group.state);
  group[2].view = group[3].view = Generation(11);
  group[1].speed = 10;
  decision = group.decide();
  EXPECT_EQ(decision.why, "member 2 has left; member 3 has left");
  EXPECT_EQ(decision.view->members.size(), 1U);
}

TEST(NextView, SharesFollowSpeedButIgnoreSmallAndFrequentChanges) {
  MemberGroup group({1, 2, 3});
  for (const int64_t id : {1, 2, 3}) group[id].speed = 10;
  EXPECT_FALSE(group.decide().view);
  group[3].speed = 9;
  EXPECT_FALSE(group.decide().view) << "a trifle";
  group[3].speed = 1.8;
  const Decision decision = group.decide();
  EXPECT_EQ(decision.why, "shares follow speed: 3 goes from 33% to 8%, 1 goes from 33% to 46%, 2 goes from 33% to 46%");
  apply(decision, kNow, group.state);
  group[3].speed = 10;
  EXPECT_FALSE(group.decide(kNow + 0.9).view);
  group.options.silence_seconds = 100;
  EXPECT_THAT(group.decide(kNow + 2).why, HasSubstr("3 goes from 8% to 33%"));
  group[3].speed = 0;  // without a measured speed it counts as fast as the others
  EXPECT_THAT(group.decide(kNow + 2).why, HasSubstr("3 goes from 8% to 33%"));
}

TEST(BrokenLinks, FencesAMemberAtOnceIfMostOthersReportIt) {
  MemberGroup group({1, 2, 3, 4});
  group.report(1, 3, kNow);
  EXPECT_EQ(group.fenced(), Ids{}) << "one of three: the others may say more";
  group.report(4, 3, kNow);
  EXPECT_EQ(group.fenced(), Ids{3});
  EXPECT_THAT(group.decide().why, HasSubstr("member 3 lost at step 412: connection reset (reported by 1 and 4)"));
}

TEST(BrokenLinks, ASingleReportTakesEffectAfterReportSeconds) {
  MemberGroup group({1, 2, 3, 4});
  group.report(1, 3, kNow);
  EXPECT_EQ(group.fenced(kNow + 0.39), Ids{});
  EXPECT_EQ(group.fenced(kNow + 0.41), Ids{3});
}

TEST(BrokenLinks, FencesTheReporterIfTheReportedMembersLive) {
  MemberGroup group({1, 2, 3});
  for (const int64_t other : {1, 3}) group.report(2, other, kNow);
  // members 1 and 3 live and have not noticed anything yet
  for (const int64_t other : {1, 3}) group[other].heard = kNow + 0.3;
  EXPECT_EQ(group.fenced(kNow + 0.5), Ids{2});
  EXPECT_THAT(group.decide(kNow + 0.5).why, HasSubstr("has no link to 1: connection reset"));
}

TEST(BrokenLinks, FencesTheReportedMembersIfTheyAreSilent) {
  MemberGroup group({1, 2, 3});
  for (const int64_t other : {1, 3}) group.report(2, other, kNow);
  EXPECT_EQ(group.fenced(kNow + 0.5), (Ids{1, 3}));
}

TEST(BrokenLinks, FencesAMemberThatLostAllItsLinks) {
  MemberGroup group({1, 2, 3, 4});
  for (const int64_t other : {1, 3, 4}) group.report(2, other, kNow);  // member 2's own reports come first
  EXPECT_EQ(group.fenced(kNow), Ids{});
  for (const int64_t other : {1, 3, 4}) group.report(other, 2, kNow + 0.005);
  EXPECT_EQ(group.fenced(kNow + 0.006), Ids{2});
  EXPECT_EQ(group.fenced(kNow + 0.5), Ids{2});
}

// A switch between two halves of the group fails, so each member reports half of the others.
TEST(BrokenLinks, FencesOneHalfOfALargeSplitGroup) {
  constexpr int64_t kMany = 512;
  Ids ids(kMany);
  std::iota(ids.begin(), ids.end(), 1);
  MemberGroup group(ids);
  for (const int64_t left : ids) {
    for (const int64_t right : ids) {
      if ((left - right) % 2 == 0) continue;
      group.report(left, right, kNow - 1);
    }
  }
  const Ids out = group.fenced();
  ASSERT_EQ(out.size(), kMany / 2U) << "one half";
  for (const int64_t id : out) EXPECT_EQ(id % 2, out[0] % 2);
}

TEST(BrokenLinks, FencesTheHigherIdOfTwoThatReportEachOther) {
  MemberGroup group({1, 2, 3, 4});
  group.report(2, 3, kNow);
  group.report(3, 2, kNow);
  EXPECT_EQ(group.fenced(kNow + 0.5), Ids{3});
}

TEST(BrokenLinks, TheReasonQuotesBothEnds) {
  MemberGroup group({1, 2});
  group.report(1, 2, kNow);
  group.report(2, 1, kNow);
  group[1].loss_reports[MemberId(2)].why = "wrong checksum";
  EXPECT_THAT(group.decide(kNow + 0.5).why,
              HasSubstr("connection reset (reported by 1; its own reason: wrong checksum)"));
}

TEST(BrokenLinks, IgnoresReportsOfMembersThatAreGone) {
  MemberGroup group({1, 2, 3});
  group.report(2, 1, kNow);
  group[2].lost = "killed by signal 9";
  EXPECT_EQ(group.fenced(kNow + 0.1), Ids{2});
}

TEST(BrokenLinks, AJoinersReportDoesNotFenceTheLastMemberWithTheState) {
  MemberGroup group({1});
  group.seat_joining(5, 1);
  group.report(5, 1, kNow);
  EXPECT_EQ(group.fenced(kNow + 0.5), Ids{}) << "member 1 may be dead: its silence will tell";
  group[1].heard = kNow + 0.4;
  EXPECT_EQ(group.fenced(kNow + 0.5), Ids{5});
}

// ---- guests: members that joined by a token ------------------------------------------------------------------------

TEST(Guests, AMemberWithTheSecretLeadsIfOneHasTheState) {
  MemberGroup group({1, 3, 4, 5});
  group[3].guest = group[4].guest = true;
  group[1].lost = "killed";
  ASSERT_TRUE(group.decide().view);
  EXPECT_EQ(group.decide().view->leader(), MemberId(5));
  group[5].lost = "killed";
  EXPECT_EQ(group.decide().view->leader(), MemberId(3)) << "only guests have the state";
}

// A guest has none of the run's checkpoints, so it would begin at step 0.
TEST(Guests, WaitUntilAMemberWithTheSecretHasBegun) {
  MemberGroup group({});
  group.options.wanted = 1;
  group.add(1).guest = true;
  EXPECT_FALSE(group.decide(kNow + 0.9).view);
  group[1].heard = kNow + 100;
  EXPECT_FALSE(group.decide(kNow + 100).view);
  EXPECT_THAT(group.decide(kNow + 100).why, HasSubstr("a member with the run's secret must begin"));
  group.options.wanted = group.options.minimum = 2;  // guests count among the members that are needed
  group.add(2);
  ASSERT_TRUE(group.decide().view);
  EXPECT_TRUE(group.decide().view->fresh);
  EXPECT_EQ(group.decide().why, "member 2 begins");
  EXPECT_EQ(group.decide().view->members.size(), 1U);
}

TEST(Guests, TheLeaderStaysWhenMembersWithLowerIdsCompute) {
  MemberGroup group({3, 5, 8});
  group[3].guest = true;
  group.state.view->named_leader = MemberId(5);
  group[8].lost = "killed";
  EXPECT_EQ(group.decide().view->leader(), MemberId(5));
}

TEST(Guests, HandTheLeadToAMemberWithTheSecretOnceItComputes) {
  MemberGroup group({2, 6});
  group[2].guest = true;
  group.state.view_made = kNow;
  EXPECT_FALSE(group.decide().view) << "member 6 has not begun to compute";
  group[6].speed = 1;
  EXPECT_EQ(group.fenced(), Ids{2});
  ASSERT_TRUE(group.decide().view);
  EXPECT_EQ(group.decide().view->leader(), MemberId(6));
  EXPECT_FALSE(group.decide().view->fresh);
  EXPECT_THAT(group.decide().why, HasSubstr("member 2 begins again: it joined by a token"));
  group[6].phase = Phase::leaving;
  EXPECT_THAT(group.fenced(), ::testing::Not(::testing::Contains(2))) << "somebody must keep the state";
}

TEST(Guests, DoNotLeadOnBesideAJoinerThatComputesFromThisViewOn) {
  MemberGroup group({2});
  group[2].guest = true;
  group.seat_joining(6, 2);
  group[6].phase = Phase::caught_up;
  EXPECT_EQ(group.fenced(), Ids{});
  ASSERT_TRUE(group.decide().view);
  EXPECT_EQ(group.decide().view->leader(), MemberId(2));
}

// However many guests report a member, and whichever links they close.
TEST(Guests, CannotPutAMemberWithTheSecretOut) {
  for (const bool it_reports_them : {false, true}) {
    MemberGroup group({1, 2, 3, 4});
    for (const int64_t guest : {2, 3, 4}) {
      group[guest].guest = true;
      group.report(guest, 1, kNow);
      if (it_reports_them) group.report(1, guest, kNow);
    }
    EXPECT_EQ(group.fenced(kNow + 0.1), Ids{});
    for (const int64_t id : {1, 2, 3, 4}) group[id].heard = kNow + 0.3;
    EXPECT_EQ(group.fenced(kNow + 0.5), (Ids{2, 3, 4}));
  }
}

TEST(Guests, AReportAboutADeadMemberCostsNoGuestItsPlace) {
  MemberGroup group({1, 2, 3});
  group[2].guest = true;
  group.report(2, 1, kNow);
  EXPECT_EQ(group.fenced(kNow + 0.5), Ids{});
  group[2].heard = group[3].heard = kNow + 1;
  EXPECT_EQ(group.fenced(kNow + 1.1), Ids{1}) << "it is silent";
}

}  // namespace
}  // namespace sinew::cluster
