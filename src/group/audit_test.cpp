// Properties of the pure decisions about audits, over many seeds.
#include "group/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace sinew::group {
namespace {

using VerdictKind = AuditVerdict::Kind;

std::string name(MemberId id) {
  return "member " + std::to_string(id.value);
}

struct Situation {
  cluster::View view;
  std::vector<MemberId> owners;
  Audit audit;
};

Situation random_situation(uint64_t seed) {
  RandomStream random(random_key({seed, 77}));
  Situation found;
  const auto members = static_cast<int64_t>(1 + random.below(9));
  const double shares[] = {0, 0.2, 1, 1, 3};
  for (int64_t i = 1; i <= members; ++i) {
    found.view.members.push_back({.id = MemberId(10 * i),
                                  .address = "here",
                                  .share = shares[random.below(5)],
                                  .joining = i > 1 && random.below(4) == 0,
                                  .donor = {}});
  }
  const auto shards = static_cast<int64_t>(1 + random.below(20));
  found.owners = cluster::plan_shards(found.view, shards);
  found.audit = audit_of(seed, Step(static_cast<int64_t>(random.below(1000))), shards, random.uniform(0, 1.2));
  return found;
}

TEST(AuditPlan, EveryAuditedShardGetsOtherMembersThanItsOwner) {
  int64_t with_third = 0, alone = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Situation now = random_situation(seed);
    const auto planned = plan_audits(now.view, now.owners, now.audit);
    EXPECT_EQ(planned, plan_audits(now.view, now.owners, now.audit));
    const auto computing = now.view.computing();
    if (computing.size() < 2) {
      EXPECT_TRUE(planned.empty());
      ++alone;
      continue;
    }
    std::vector<int64_t> shards;
    for (const PlannedAudit& one : planned) {
      shards.push_back(one.shard);
      EXPECT_EQ(one.owner, now.owners[static_cast<size_t>(one.shard)]);
      std::set<MemberId> all = {one.owner, one.auditor};
      if (one.third) all.insert(*one.third);
      EXPECT_EQ(all.size(), one.third ? 3U : 2U);
      EXPECT_EQ(one.third.has_value(), computing.size() > 2);
      for (const MemberId id : all) EXPECT_EQ(std::ranges::count(computing, id), 1);
      EXPECT_FALSE(one.why.empty());
      with_third += one.third ? 1 : 0;
    }
    EXPECT_EQ(shards, now.audit.shards) << "seed " << seed;
  }
  EXPECT_GT(with_third, 1000);
  EXPECT_GT(alone, 100);
}

// If all shards are audited, 2 S shards are computed. If the shares are equal, too, no member computes many more than
// the others.
TEST(AuditPlan, TheWorkIsSpread) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Situation now = random_situation(seed);
    for (auto& member : now.view.members) member.share = 1;
    const auto shards = static_cast<int64_t>(now.owners.size());
    now.owners = cluster::plan_shards(now.view, shards);
    const auto computing = now.view.computing();
    if (computing.size() < 3) continue;
    std::map<MemberId, int64_t> work;
    for (const MemberId id : computing) work[id] = std::ranges::count(now.owners, id);
    for (const PlannedAudit& one : plan_audits(now.view, now.owners, audit_of(seed, Step(3), shards, 1)))
      ++work[one.auditor];
    std::vector<int64_t> counts;
    for (const auto& [id, count] : work) counts.push_back(count);
    const auto members = static_cast<int64_t>(counts.size());
    EXPECT_LE(std::ranges::max(counts), (2 * shards + members - 1) / members + 1) << "seed " << seed;
  }
}

TEST(AuditPlan, AMemberWithoutShardsAuditsIfThereIsOne) {
  cluster::View view;
  for (int64_t id = 1; id <= 5; ++id)
    view.members.push_back({.id = MemberId(id), .address = "here", .share = 1, .joining = false, .donor = {}});
  const auto owners = cluster::plan_shards(view, 3);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Audit audit{.step = Step(1), .shards = {1}, .key = seed};
    const auto planned = plan_audits(view, owners, audit);
    ASSERT_EQ(planned.size(), 1U);
    EXPECT_EQ(std::ranges::count(owners, planned[0].auditor), 0);
  }
}

// No member that computed the right result is called wrong, whatever result a wrong member sends, and whichever members
// have not answered yet.
TEST(AuditVerdict, AnInnocentIsNeverBlamed) {
  const Digest right{1, 2};
  std::map<VerdictKind, int64_t> kinds;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    RandomStream random(random_key({seed, 78}));
    PlannedAudit planned{.shard = 4, .owner = MemberId(1), .auditor = MemberId(2), .third = std::nullopt, .why = ""};
    if (random.below(3) != 0) planned.third = MemberId(3);
    const auto liar = MemberId(static_cast<int64_t>(random.below(4)));  // 0: nobody
    Opinions opinions;
    for (int64_t id = 1; id <= 3; ++id) {
      if (random.below(6) == 0) continue;  // it died, or it is not done
      const bool errs = MemberId(id) == liar;
      opinions[MemberId(id)] = errs ? Digest{random.bits64(), 3} : right;
    }
    const AuditVerdict verdict = judge_audit(planned, opinions, {.step = Step(9)});
    ++kinds[verdict.kind];
    EXPECT_FALSE(text_of(verdict, planned, opinions, {.step = Step(9)}, name).empty());
    EXPECT_EQ(verdict.kind == VerdictKind::wrong, verdict.wrong.has_value());
    EXPECT_EQ(verdict.wrong.value_or(liar), liar) << "seed " << seed;
    const bool both = opinions.contains(MemberId(1)) && opinions.contains(MemberId(2));
    EXPECT_EQ(verdict.kind == VerdictKind::waiting, !both);
    for (const MemberId id : verdict.missing) EXPECT_FALSE(opinions.contains(id));
    EXPECT_EQ(verdict.missing.empty(),
              verdict.kind != VerdictKind::waiting && verdict.kind != VerdictKind::needs_third);
    if (!both) continue;
    const bool differ = opinions.at(MemberId(1)) != opinions.at(MemberId(2));
    EXPECT_EQ(verdict.kind == VerdictKind::equal, !differ);
    if (!differ) continue;
    EXPECT_EQ(verdict.kind == VerdictKind::undecided, !planned.third);
    EXPECT_EQ(verdict.kind == VerdictKind::wrong, planned.third && opinions.contains(MemberId(3)));
  }
  for (const VerdictKind kind :
       {VerdictKind::waiting, VerdictKind::equal, VerdictKind::needs_third, VerdictKind::wrong, VerdictKind::undecided})
    EXPECT_GT(kinds[kind], 20) << static_cast<int>(kind);
}

TEST(AuditVerdict, ThreeDifferentResultsDecideNothing) {
  const PlannedAudit planned{.shard = 4, .owner = MemberId(1), .auditor = MemberId(2), .third = MemberId(3), .why = ""};
  const Opinions opinions = {{MemberId(1), {1, 1}}, {MemberId(2), {1, 2}}, {MemberId(3), {1, 3}}};
  const AuditVerdict verdict = judge_audit(planned, opinions, {.step = Step(9)});
  EXPECT_EQ(verdict.kind, VerdictKind::undecided);
  const std::string why = text_of(verdict, planned, opinions, {.step = Step(9)}, name);
  for (const Digest digest : {Digest{1, 1}, Digest{1, 2}, Digest{1, 3}})
    EXPECT_NE(why.find(to_hex(digest)), std::string::npos) << why;
}

// Damage does not make a file decode, so the copy that decodes is the right one, and two members are enough to know.
TEST(AuditVerdict, OfTwoCopiesTheOneThatDecodesIsRight) {
  const Digest decodes, torn{1, 1};
  const Audit copies{.step = Step(9), .shards = {4}, .of_copies = true};
  for (const std::optional<MemberId> third : {std::optional<MemberId>(), std::optional(MemberId(3))}) {
    const PlannedAudit planned{.shard = 4, .owner = MemberId(1), .auditor = MemberId(2), .third = third, .why = ""};
    EXPECT_EQ(judge_audit(planned, {{MemberId(1), torn}, {MemberId(2), decodes}}, copies).wrong, MemberId(1));
    EXPECT_EQ(judge_audit(planned, {{MemberId(1), decodes}, {MemberId(2), torn}}, copies).wrong, MemberId(2));
    const Opinions opinions{{MemberId(1), torn}, {MemberId(2), decodes}};
    const std::string why = text_of(judge_audit(planned, opinions, copies), planned, opinions, copies, name);
    EXPECT_TRUE(why.ends_with("it is not, on " + name(MemberId(2)))) << why;
    for (const Digest same : {decodes, torn})
      EXPECT_EQ(judge_audit(planned, {{MemberId(1), same}, {MemberId(2), same}}, copies).kind, VerdictKind::equal);
    EXPECT_EQ(judge_audit(planned, {{MemberId(1), torn}}, copies).kind, VerdictKind::waiting);
  }
}

TEST(Audits, TellWhichAreToBeJudgedAndWhichAreUnsettled) {
  Audits audits({{.shard = 4, .owner = MemberId(1), .auditor = MemberId(2), .third = {}, .why = ""},
                 {.shard = 7, .owner = MemberId(2), .auditor = MemberId(1), .third = {}, .why = ""}});
  const auto judged = [&] {
    std::vector<int64_t> shards;
    while (const PlannedAudit* one = audits.next_to_judge()) shards.push_back(one->shard);
    return shards;
  };
  EXPECT_EQ(judged(), (std::vector<int64_t>{4, 7}));
  EXPECT_EQ(judged(), std::vector<int64_t>());
  audits.heard(7);
  audits.heard(5);  // not audited
  audits.heard(7);
  EXPECT_EQ(judged(), std::vector<int64_t>{7});
  audits.settle(7);
  EXPECT_FALSE(audits.settled());
  ASSERT_EQ(audits.unsettled().size(), 1U);
  EXPECT_EQ(audits.unsettled()[0]->shard, 4);
  audits.settle(4);
  EXPECT_TRUE(audits.settled());
  EXPECT_TRUE(Audits().settled());
}

TEST(AuditPlan, CopiesAreReadOnTwoMachines) {
  cluster::View view;
  for (int64_t id = 1; id <= 6; ++id)
    view.members.push_back({.id = MemberId(id),
                            .address = (id <= 4 ? "10.0.0.1:" : "10.0.0.2:") + std::to_string(5000 + id),
                            .share = id <= 4 ? 1.0 : 0.01,
                            .joining = false,
                            .donor = {}});
  const auto owners = cluster::plan_shards(view, 12);
  Audit audit{.step = Step(1), .shards = {0, 3, 7, 11}, .of_copies = true};
  for (const PlannedAudit& one : plan_audits(view, owners, audit))
    EXPECT_NE(one.owner.value <= 4, one.auditor.value <= 4) << one.shard;
  audit.of_copies = false;
  for (const PlannedAudit& one : plan_audits(view, owners, audit))
    EXPECT_LE(one.auditor.value, 4) << "the others are slow";
}

TEST(AuditDigest, CoversEveryRowTheAbsentOnesAndTheSmallBytes) {
  const std::vector<float> a = {1, 2, 3}, b = {4, 5};
  const std::vector<int64_t> lengths = {3, 2};
  const Leaf whole{{a.data(), b.data()}, "s", nullptr};
  const Digest digest = leaf_digest(&whole, lengths);
  std::set<Digest> all = {digest, leaf_digest(nullptr, lengths)};
  for (const Leaf& other : {Leaf{{a.data(), nullptr}, "s", nullptr}, Leaf{{nullptr, b.data()}, "s", nullptr},
                            Leaf{{a.data(), b.data()}, "t", nullptr}, Leaf{{}, "s", nullptr}})
    all.insert(leaf_digest(&other, lengths));
  EXPECT_EQ(all.size(), 6U);
  for (size_t i = 0; i < a.size(); ++i) {
    for (int bit = 0; bit < 32; ++bit) {
      std::vector<float> flipped = a;
      reinterpret_cast<uint32_t*>(flipped.data())[i] ^= 1U << bit;
      const Leaf other{{flipped.data(), b.data()}, "s", nullptr};
      EXPECT_NE(leaf_digest(&other, lengths), digest);
    }
  }
  const std::vector<float> copy = a;
  const Leaf same{{copy.data(), b.data()}, "s", nullptr}, absent{{nullptr, nullptr}, "s", nullptr},
      none{{}, "s", nullptr};
  EXPECT_EQ(leaf_digest(&same, lengths), digest);
  EXPECT_EQ(leaf_digest(&absent, lengths), leaf_digest(&none, lengths));
}

}  // namespace
}  // namespace sinew::group
