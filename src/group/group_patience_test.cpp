// Tests how long a member waits for a collective, and which members it reports when nothing arrives
// (group_patience.cpp).
#include <gtest/gtest.h>

#include <thread>

#include "group/protocol_testing.h"

namespace sinew::group::protocol {
namespace {

TEST(GroupPatience, ReportsTheSilentMemberAndFencesItself) {
  PaperLinks links;
  auto short_patience = options();
  short_patience.patience_seconds = 0.05;
  std::vector<MemberId> lost;
  short_patience.on_lost = [&](MemberId member, const std::string&) { lost.push_back(member); };
  Group two(kTwo, links, short_patience, system_clock());
  two.adopt(view_of(1, {kOne, kTwo}));
  two.start_at(0, {0, 6});
  two.begin(2, {}, "");
  const std::string why = why_out(two);
  EXPECT_NE(why.find("where these members are: 1"), std::string::npos) << why;
  EXPECT_EQ(lost, std::vector{kOne});
}

// A member that has sent its part waits like the others, so it is not reported.
TEST(GroupPatience, ReportsTheMemberThatHasNotSentItsPart) {
  PaperLinks links;
  auto short_patience = options();
  short_patience.patience_seconds = 0.05;
  std::vector<MemberId> lost;
  short_patience.on_lost = [&](MemberId member, const std::string&) { lost.push_back(member); };
  Group one(kOne, links, short_patience, system_clock());
  one.adopt(view_of(1, {kOne, kTwo, kThree}));
  one.start_at(0, {0, 6});
  for (const MemberId other : {kTwo, kThree}) one.on_frame(other, report_frame(1, 0, false, Origin{0, 6}));
  one.begin(3, {}, "");
  one.deliver(*one.next_shard(), std::nullopt);
  one.on_frame(kTwo, frame(Kind::small, 1, 0, encode(SmallSums{Shape(3, {}).digest, {}, {"x"}})));
  EXPECT_THROW(one.next_shard(), Fenced);
  EXPECT_EQ(lost, std::vector{kThree});
}

// The members exchange only progress frames in the last collective, as in an evaluation after short steps.
TEST(GroupPatience, WaitsWhileAnotherMemberMakesProgress) {
  constexpr double kPatience = 1;
  link::MemoryNetwork network;
  struct Side {
    std::unique_ptr<link::Links> links;
    std::unique_ptr<Group> group;
  };
  Side sides[2];
  cluster::View view = view_of(1, {kOne, kTwo});
  for (int64_t i = 0; i < 2; ++i) {
    Side& side = sides[i];
    side.links = network.join({[&side](MemberId from, link::Frame one) { side.group->on_frame(from, std::move(one)); },
                               [](MemberId, const std::string&) {}});
    view.members[static_cast<size_t>(i)].address = side.links->address();
    auto given = options();
    given.patience_seconds = kPatience;
    side.group = std::make_unique<Group>(MemberId(i + 1), *side.links, given, system_clock());
    side.links->set_identity(MemberId(i + 1));
  }
  const auto live = [&](Group& group, double seconds_a_shard) {
    group.adopt(view);
    group.start_at(0, {0, 6});
    for (const int64_t shards : {2, 2, 2, 200}) {
      group.begin(shards, {}, "");
      while (const auto shard = group.next_shard()) {
        if (shards > 2) system_clock().sleep_seconds(seconds_a_shard);
        group.deliver(*shard, Leaf{{}, "x", nullptr});
      }
      group.finish({});
    }
  };
  std::thread slow([&] { EXPECT_NO_THROW(live(*sides[1].group, 5 * kPatience / 100)); });
  EXPECT_NO_THROW(live(*sides[0].group, 0));
  slow.join();
  for (Side& side : sides) side.links.reset();
}

TEST(GroupPatience, AComputingMemberSendsProgressToAllOthers) {
  Beside two({kThree});
  for (const MemberId other : {kOne, kThree}) {
    int told = 0;
    for (const link::Frame& sent : two.links.to(other)) told += sent.kind == static_cast<uint16_t>(Kind::progress);
    EXPECT_EQ(told, 1);
  }
}

// A member must not time out while another one computes a long shard.
TEST(GroupPatience, TheLimitGrowsWithTheUsualCollective) {
  constexpr double kCollective = 0.02;
  auto short_patience = options();
  short_patience.patience_seconds = kCollective;  // the limit is ten times this in the first collective
  Beside two({}, short_patience);
  system_clock().sleep_seconds(kCollective);
  two.group.on_frame(kOne, reduced_frame(1, 0, "", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  two.group.finish({});
  two.begin("");
  const double began = system_clock().monotonic_seconds();
  EXPECT_THROW(while (const auto shard = two.group.next_shard()) two.group.deliver(*shard, std::nullopt), Fenced);
  EXPECT_GE(system_clock().monotonic_seconds() - began, 40 * kCollective);
}

}  // namespace
}  // namespace sinew::group::protocol
