// One member against scripted frames: what it does when members compute different results of a shard.
#include <gtest/gtest.h>

#include <set>

#include "group/audit.h"
#include "group/protocol_testing.h"

namespace sinew::group::protocol {
namespace {

constexpr Digest kOther{5, 5}, kAnother{5, 6};

// A member of a collective of a few shards without rows. Its results are the leaf "x". The other members are scripted.
struct Audited {
  PaperLinks links;
  std::vector<std::pair<MemberId, std::string>> wrong;
  cluster::View view;
  Audit audit;
  std::vector<PlannedAudit> planned;
  Group group;

  Audited(MemberId me, const std::vector<MemberId>& members, double fraction = 1, int64_t shards = 3)
      : view(view_of(1, members)),
        audit(audit_for(view, shards)),
        planned(plan_audits(view, cluster::plan_shards(view, shards), audit)),
        group(me, links, with_ears(), system_clock()) {
    audit.all = fraction >= 1;
    group.adopt(view);
    group.start_at(0, {0, 77});
    for (const MemberId id : members) {
      if (id != me) group.on_frame(id, report_frame(1, 0, false, Origin{0, 77}));
    }
    group.begin(shards, {}, "", std::nullopt, audit);
    work();
    for (const MemberId id : members) {
      if (id == me) continue;
      group.on_frame(id, frame(Kind::small, 1, 0, encode(small_of(id, cluster::plan_shards(view, shards)))));
    }
  }

  // Chooses all shards, so that each of three members is the third of one shard.
  static Audit audit_for(const cluster::View& view, int64_t shards) {
    for (uint64_t seed = 0;; ++seed) {
      const Audit audit = audit_of(seed, Step(4), shards, 1);
      std::set<std::optional<MemberId>> thirds;
      for (const PlannedAudit& one : plan_audits(view, cluster::plan_shards(view, shards), audit))
        thirds.insert(one.third);
      if (thirds.size() == view.members.size() || view.members.size() < 3) return audit;
    }
  }

  GroupOptions with_ears() {
    GroupOptions given = options();
    given.on_wrong = [this](MemberId id, const std::string& why) { wrong.emplace_back(id, why); };
    return given;
  }

  // Does all that this member can do now. Returns whether the collective is over.
  bool work() {
    while (true) {
      const Group::Turn turn = group.turn();
      if (turn.kind == Group::Turn::Kind::over) return true;
      if (turn.kind == Group::Turn::Kind::idle) return false;
      if (turn.kind != Group::Turn::Kind::shard) continue;
      const Leaf leaf{{}, "x", nullptr};
      turn.audit ? group.deliver_audit(turn.shard, leaf) : group.deliver(turn.shard, leaf);
    }
  }

  static SmallSums small_of(MemberId id, const std::vector<MemberId>& owners) {
    SmallSums sums{.shape = Shape(static_cast<int64_t>(owners.size()), {}).digest, .rows = {}, .nodes = {}};
    std::vector<bool> mine;
    for (const MemberId owner : owners) mine.push_back(owner == id);
    for (size_t i = 0; i < maximal_nodes(mine).size(); ++i) sums.nodes.emplace_back("x");
    return sums;
  }

  static Digest right() {
    const Leaf leaf{{}, "x", nullptr};
    return leaf_digest(&leaf, {});
  }

  void hears(MemberId from, int64_t shard, Digest digest) {
    group.on_frame(from, frame(Kind::audit, 1, 0, encode(digest), shard));
  }

  // The other members compute everything that they are to compute. `liar` has the result `lie` of the shard.
  void others_answer(MemberId me, MemberId liar = {}, int64_t shard = 0, Digest lie = kOther) {
    for (const PlannedAudit& one : planned) {
      for (const MemberId id : {one.owner, one.auditor}) {
        if (id != me) hears(id, one.shard, id == liar && one.shard == shard ? lie : right());
      }
    }
  }
};

TEST(GroupAudits, TheLeaderEndsTheCollectiveOnceAllShardsHaveTwoEqualResults) {
  Audited one(kOne, {kOne, kTwo, kThree});
  EXPECT_FALSE(one.work());
  EXPECT_GT(one.group.counts().audited, 0);
  one.others_answer(kOne);
  EXPECT_TRUE(one.work());
  EXPECT_TRUE(one.group.finish({}).wrong.empty());
  EXPECT_TRUE(one.wrong.empty());
}

TEST(GroupAudits, EveryComputingMemberHearsTheDigests) {
  Audited two(kTwo, {kOne, kTwo, kThree});
  two.work();
  for (const MemberId to : {kOne, kThree}) {
    std::map<int64_t, Digest> heard;
    for (const link::Frame& one : two.links.to(to)) {
      if (one.kind == static_cast<uint16_t>(Kind::audit)) heard[one.part] = *decode_digest(*one.payload);
    }
    for (const PlannedAudit& one : two.planned)
      EXPECT_EQ(heard.contains(one.shard), one.owner == kTwo || one.auditor == kTwo) << one.shard;
    for (const auto& [shard, digest] : heard) EXPECT_EQ(digest, Audited::right());
  }
}

TEST(GroupAudits, AThirdMemberDecidesAndTheWrongOneIsReported) {
  for (const PlannedAudit& of : Audited(kOne, {kOne, kTwo, kThree}).planned) {
    for (const MemberId liar : {of.owner, of.auditor}) {
      if (liar == kOne) continue;  // another test has the case that this member itself is wrong
      Audited one(kOne, {kOne, kTwo, kThree});
      one.others_answer(kOne, liar, of.shard);
      EXPECT_FALSE(one.work());
      if (of.third != kOne) one.hears(*of.third, of.shard, Audited::right());
      EXPECT_FALSE(one.work()) << "the collective waits for the view without the liar";
      ASSERT_EQ(one.wrong.size(), 1U);
      EXPECT_EQ(one.wrong[0].first, liar);
      EXPECT_NE(one.wrong[0].second.find("shard " + std::to_string(of.shard) + " of step 4"), std::string::npos)
          << one.wrong[0].second;
      EXPECT_FALSE(one.work());
      EXPECT_EQ(one.wrong.size(), 1U) << "reported once";
    }
  }
}

// The leader also writes the records of the run from its own state, which may be wrong. The other members come to the
// same verdict, even if the leader dies.
TEST(GroupAudits, AllGoBackIfTheLeaderIsWrong) {
  for (const MemberId me : {kOne, kTwo}) {
    Audited member(me, {kOne, kTwo, kThree});
    const PlannedAudit of = *std::ranges::find_if(member.planned, [](const auto& it) { return it.owner == kOne; });
    if (me == kTwo) {
      member.others_answer(kTwo, kOne, of.shard);
    } else {
      for (const PlannedAudit& it : member.planned)
        for (const MemberId id : {it.owner, it.auditor})
          if (id != kOne) member.hears(id, it.shard, it.shard == of.shard ? kOther : Audited::right());
    }
    if (*of.third != me) member.hears(*of.third, of.shard, me == kOne ? kOther : Audited::right());
    try {
      member.work();
      FAIL() << me.value;
    } catch (const MembersDiffer& differ) {
      EXPECT_EQ(differ.outvoted, std::vector{kOne});
    }
    EXPECT_TRUE(member.wrong.empty());
  }
}

TEST(GroupAudits, TheGroupGoesOnWithoutTheWrongMember) {
  Audited one(kOne, {kOne, kTwo, kThree});
  const PlannedAudit of = *std::ranges::find_if(one.planned, [](const auto& it) { return it.owner == kThree; });
  one.others_answer(kOne, kThree, of.shard);
  one.work();
  if (of.third != kOne) one.hears(*of.third, of.shard, Audited::right());
  one.work();
  ASSERT_EQ(one.wrong.size(), 1U);
  one.view = view_of(2, {kOne, kTwo});
  one.group.adopt(one.view);
  ViewChangeReport report;
  report.collective = 0;
  report.computed_before = true;
  report.history = 0;
  report.held = {false, true, false};
  one.group.on_frame(kTwo, frame(Kind::view_change_report, 2, 0, encode(report)));
  EXPECT_FALSE(one.work());
  const auto owners = cluster::plan_shards(one.view, 3, {kOne, kTwo, std::nullopt});
  for (int64_t shard = 0; shard < 3; ++shard)
    one.group.on_frame(kTwo, frame(Kind::audit, 2, 0, encode(Audited::right()), shard));
  one.group.on_frame(kTwo, frame(Kind::small, 2, 0, encode(one.small_of(kTwo, owners))));
  EXPECT_TRUE(one.work());
  const Reduced reduced = one.group.finish({});
  ASSERT_EQ(reduced.wrong.size(), 1U);
  EXPECT_TRUE(reduced.wrong[0].starts_with("member 3 (paper) computed a wrong result of shard ")) << reduced.wrong[0];
}

// If not every shard is audited, the wrong member may have erred before: all go back.
TEST(GroupAudits, AllEndTheGroupIfEarlierResultsMayBeWrong) {
  for (const MemberId me : {kOne, kTwo}) {
    Audited member(me, {kOne, kTwo, kThree}, 0.5);
    const PlannedAudit of = *std::ranges::find_if(member.planned, [](const auto& it) { return it.owner == kThree; });
    member.others_answer(me, kThree, of.shard);
    if (*of.third != me) member.hears(*of.third, of.shard, Audited::right());
    try {
      member.work();
      FAIL() << me.value;
    } catch (const MembersDiffer& differ) {
      EXPECT_EQ(differ.outvoted, std::vector{kThree});
      EXPECT_NE(std::string(differ.what()).find(to_hex(kOther)), std::string::npos) << differ.what();
    }
    EXPECT_TRUE(member.wrong.empty());
  }
}

// The member that decides ends like the others. Before that, it must have sent its result, by which they decide, too.
TEST(GroupAudits, AMemberThatEndsHasSentItsResult) {
  Audited one(kOne, {kOne, kTwo, kThree}, 0.5);
  const PlannedAudit of = *std::ranges::find_if(one.planned, [](const auto& it) { return it.third == kOne; });
  one.others_answer(kOne, of.owner, of.shard);
  EXPECT_THROW(one.work(), MembersDiffer);
  for (const MemberId to : {kTwo, kThree}) {
    const auto frames = one.links.to(to);
    EXPECT_TRUE(std::ranges::any_of(frames, [&](const link::Frame& frame) {
      return frame.kind == static_cast<uint16_t>(Kind::audit) && frame.part == of.shard;
    }));
  }
}

// Every member comes to this verdict by itself, so the death of the leader does not hide it.
TEST(GroupAudits, WithoutADecisionAllMembersEnd) {
  for (const MemberId me : {kOne, kTwo}) {
    Audited one(me, {kOne, kTwo});
    one.others_answer(me, me == kOne ? kTwo : kOne, one.planned[0].shard);
    try {
      one.work();
      FAIL() << me.value;
    } catch (const MembersDiffer& differ) {
      EXPECT_TRUE(differ.outvoted.empty());
      EXPECT_EQ(differ.code, ErrorCode("GROUP_MEMBERS_DIVERGED"));
    }
  }
  Audited three(kOne, {kOne, kTwo, kThree});
  const PlannedAudit of = *std::ranges::find_if(three.planned, [](const auto& it) { return it.third == kOne; });
  three.others_answer(kOne, of.owner, of.shard);
  three.work();
  EXPECT_EQ(three.wrong.size(), 1U);
  Audited differing(kOne, {kOne, kTwo, kThree});
  for (const PlannedAudit& it : differing.planned) {
    for (const MemberId id : {it.owner, it.auditor}) {
      const Digest wrong = id == kTwo ? kOther : kAnother;
      if (id != kOne) differing.hears(id, it.shard, it.shard == of.shard ? wrong : Audited::right());
    }
  }
  EXPECT_THROW(differing.work(), MembersDiffer);
}

// An audit is judged when one of its results has come, and not whenever a lane looks for work.
TEST(GroupAudits, TheWorkGrowsWithTheNumberOfResults) {
  constexpr int64_t kMany = 1000;
  Audited one(kOne, {kOne, kTwo, kThree}, 1, kMany);
  ASSERT_EQ(one.planned.size(), static_cast<size_t>(kMany));
  for (const PlannedAudit& it : one.planned) {
    for (const MemberId id : {it.owner, it.auditor}) {
      if (id == kOne) continue;
      one.hears(id, it.shard, Audited::right());
      one.work();
    }
  }
  EXPECT_TRUE(one.work());
  // A shard is judged once at the beginning, once for each of its two results, and once when this member has computed
  // it again.
  EXPECT_LE(one.group.counts().judged, 3 * kMany + one.group.counts().audited);
  EXPECT_GE(one.group.counts().judged, kMany);
}

TEST(GroupAudits, RefusesADigestThatDoesNotRead) {
  Audited one(kOne, {kOne, kTwo});
  one.group.on_frame(kTwo, frame(Kind::audit, 1, 0, link::Bytes(15), 0));
  EXPECT_TRUE(why_out(one.group).starts_with("member 2 sent ")) << why_out(one.group);
}

}  // namespace
}  // namespace sinew::group::protocol
