// Tests one member against scripted frames: what it sends and accepts, and what fences it.
#include <gtest/gtest.h>

#include <thread>

#include "group/protocol_testing.h"

namespace sinew::group::protocol {
namespace {

TEST(GroupProtocol, IgnoresAResultOfAnOldView) {
  Beside two;
  two.group.adopt(view_of(2, {kOne, kTwo}));
  two.group.on_frame(kOne, reduced_frame(1, 0, "old", 0));
  two.group.on_frame(kOne, report_frame(2, 0));
  two.group.on_frame(kOne, reduced_frame(2, 0, "new", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  EXPECT_EQ(two.group.finish({}).control_message, "new");
  EXPECT_EQ(two.group.history(), history_after(0, "new"));
}

TEST(GroupProtocol, KeepsFramesOfAViewThatHasNotComeYet) {
  Beside two;
  two.group.on_frame(kOne, report_frame(3, 1));
  two.group.on_frame(kOne, reduced_frame(3, 0, "handed over", 0));
  two.group.on_frame(kOne, reduced_frame(2, 0, "skipped", 0));
  two.group.adopt(view_of(3, {kOne, kTwo}));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  EXPECT_EQ(two.group.finish({}).control_message, "handed over");
}

TEST(GroupProtocol, HandsKeptResultsToMembersThatLackThem) {
  Beside two({kThree});
  uint64_t history = 0;
  for (int64_t collective = 0; collective < 30; ++collective) {
    if (collective > 0) two.begin("two");
    two.group.on_frame(kOne, reduced_frame(1, collective, "n", history));
    history = history_after(history, "n");
    while (const auto shard = two.group.next_shard()) two.group.deliver(*shard, std::nullopt);
    two.group.finish({});
  }
  two.group.adopt(view_of(2, {kOne, kTwo}, {kThree}));
  two.links.to(kOne);
  two.links.to(kThree);
  two.group.on_frame(kOne, report_frame(2, 29));
  const auto to_one = two.links.to(kOne);
  ASSERT_EQ(to_one.size(), 1U);
  EXPECT_EQ(to_one[0].kind, static_cast<uint16_t>(Kind::reduced_head));
  EXPECT_EQ(to_one[0].collective, 29);
  EXPECT_EQ(to_one[0].generation, Generation(2));
  two.group.on_frame(kThree, report_frame(2, 20, true));  // older results are kept while a member joins
  EXPECT_EQ(two.links.to(kThree).size(), 10U);
  two.group.adopt(view_of(3, {kOne, kTwo}, {kThree}));
  two.group.on_frame(kOne, report_frame(3, 30));
  two.links.to(kThree);
  two.group.on_frame(kThree, report_frame(3, 3, true));
  const auto to_three = two.links.to(kThree);
  ASSERT_EQ(to_three.size(), 1U);
  EXPECT_EQ(to_three[0].kind, static_cast<uint16_t>(Kind::gone));
}

TEST(GroupProtocol, FencesAMemberThatIsTooFarBehind) {
  Beside two;
  two.group.on_frame(kOne, {static_cast<uint16_t>(Kind::gone), Generation(1), 0, 0, nullptr});
  EXPECT_EQ(why_out(two.group), "member 2 is too far behind: nobody has the reduced result of collective 0 any more");
}

// Member three joins one, which is at collective 5, and two.
struct Joiner {
  PaperLinks links;
  Group group;
  explicit Joiner(int64_t two_at = 5) : group(kThree, links, options(), system_clock()) {
    group.adopt(view_of(4, {kOne, kTwo}, {kThree}));
    group.on_frame(kOne, report_frame(4, 5));
    group.on_frame(kTwo, report_frame(4, two_at));
  }
};

TEST(GroupProtocol, FencesAJoinerWithAnotherHistory) {
  for (const bool right : {true, false}) {
    Joiner joiner;
    Group& three = joiner.group;
    three.on_frame(kOne, reduced_frame(4, 5, "n", 99));
    three.start_at(6, {6, 0}, right ? history_after(99, "n") : 98);
    three.begin(2, {}, "");
    three.on_frame(kOne, reduced_frame(4, 6, "n", history_after(99, "n")));
    if (right) {
      EXPECT_EQ(three.next_shard(), std::nullopt);
    } else {
      EXPECT_EQ(why_out(three), "member 3 followed a collective that the group made anew");
    }
  }
}

TEST(GroupProtocol, FencesAJoinerWhoseStateIsTooOld) {
  Joiner joiner(4);
  Group& three = joiner.group;
  EXPECT_THROW(three.start_at(4, {4, 0}, 1), Fenced);
}

TEST(GroupProtocol, AMemberMayGiveItsStateIfItHasNothingToReplay) {
  Joiner joiner;
  Group& three = joiner.group;
  three.on_frame(kOne, reduced_frame(4, 5, "n", 99));
  three.start_at(5, {5, 0}, 99);
  EXPECT_FALSE(three.may_give_state());
  three.begin(2, {}, "");
  EXPECT_EQ(three.next_shard(), std::nullopt);
  three.finish({});
  EXPECT_TRUE(three.may_give_state());
  three.adopt(view_of(5, {kOne, kTwo, kThree}));
  EXPECT_FALSE(three.may_give_state());  // it has not heard yet where the others are
}

TEST(GroupProtocol, ABadFrameFencesTheReceiverWithAReason) {
  const link::Bytes garbage(37, std::byte{0x5A});
  for (const Kind kind : {Kind::view_change_report, Kind::reduced_piece, Kind::reduced_head}) {
    Beside two;
    two.group.adopt(view_of(2, {kOne, kTwo}));
    two.group.on_frame(kOne, frame(kind, 2, 0, garbage));
    EXPECT_TRUE(why_out(two.group).starts_with("member 1 sent ")) << why_out(two.group);
  }
  for (const uint16_t kind : {1, 2, 3, 4, 5}) {
    Beside two;
    two.group.adopt(view_of(2, {kOne, kTwo}));
    two.group.on_frame(kOne, {kind, Generation(2), 0, 0, nullptr});
    EXPECT_TRUE(why_out(two.group).starts_with("member 1 sent ")) << kind;
  }
}

TEST(GroupProtocol, IgnoresStrangersAndUnknownKinds) {
  Beside two;
  two.group.on_frame(kThree, reduced_frame(1, 0, "a stranger's", 0));
  two.group.on_frame(kOne, {30, Generation(1), 0, 0, nullptr});
  two.group.on_frame(kOne, reduced_frame(1, 0, "right", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  EXPECT_EQ(two.group.finish({}).control_message, "right");
}

TEST(GroupProtocol, DifferentOriginsAreAnErrorThatNamesTheMembers) {
  PaperLinks links;
  Group two(kTwo, links, options(), system_clock());
  two.adopt(view_of(1, {kOne, kTwo}));
  two.on_frame(kOne, report_frame(1, 0, false, Origin{0, 5}));
  try {
    two.start_at(0, {0, 6});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("GROUP_STATES_DIFFER"));
    EXPECT_NE(std::string(error.what()).find("member 1 and member 2"), std::string::npos);
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(GroupProtocol, FencingWakesAWaitingLane) {
  Beside two;
  std::string why;
  std::thread lane([&] { why = why_out(two.group); });
  two.group.fence("enough");
  lane.join();
  EXPECT_EQ(why, "enough");
  EXPECT_THROW(two.begin(""), Fenced);
  EXPECT_THROW(two.group.finish({}), Fenced);
}

TEST(GroupProtocol, AViewWithoutThisMemberFencesIt) {
  Beside two;
  auto view = view_of(2, {kOne});
  view.why = "member 2 was silent";
  two.group.adopt(view);
  EXPECT_EQ(why_out(two.group), "member 2 is not in the group any more: member 2 was silent");
}

TEST(GroupProtocol, AnErrorOfTheMergeReachesEveryLane) {
  PaperLinks links;
  auto failing = options();
  failing.merge = [](std::string_view, std::string_view) -> std::string {
    throw Error("TEST_ERROR", "buffers differ", "hint");
  };
  Group one(kOne, links, failing, system_clock());
  one.adopt(view_of(1, {kOne}));
  one.start_at(0, {0, 6});
  one.begin(2, {}, "");
  for (int i = 0; i < 2; ++i) one.deliver(*one.next_shard(), Leaf{{}, "x", nullptr});
  EXPECT_THROW(one.next_shard(), Error);
  EXPECT_THROW(one.next_shard(), Error);
}

// The members of a group that have the state of member 1, which leads, and the small bytes of the others.
struct Claiming {
  explicit Claiming(std::vector<MemberId> members) : group(kOne, links, options(), system_clock()) {
    group.adopt(view_of(1, members));
    group.start_at(0, {0, 6});
    for (const MemberId id : members)
      if (id != kOne) group.on_frame(id, report_frame(1, 0, false, Origin{0, 6}));
    group.begin(2, {}, "", std::nullopt, {}, {Purpose::Kind::step, Step(35)});
  }
  void hears(MemberId from, const Shape& shape) {
    SmallSums sums{.shape = shape.digest, .rows = std::vector<bool>(shape.lengths.size()), .nodes = {}};
    sums.purpose = shape.purpose;
    sums.nodes.resize(1);
    group.on_frame(from, frame(Kind::small, 1, 0, encode(sums)));
  }
  MembersDiffer verdict() {
    try {
      while (const auto shard = group.next_shard()) group.deliver(*shard, std::nullopt);
    } catch (const MembersDiffer& differ) {
      return differ;
    }
    ADD_FAILURE() << "the members agree";
    return {"", {}};
  }
  PaperLinks links;
  Group group;
};

TEST(GroupProtocol, AMemberThatComputesSomethingElseIsOutvoted) {
  const Purpose same{Purpose::Kind::step, Step(35)}, other{Purpose::Kind::comparison, Step(34)};
  Claiming three({kOne, kTwo, kThree});
  three.hears(kTwo, Shape(2, {}, same));
  three.hears(kThree, Shape(1, {}, other));
  const MembersDiffer differ = three.verdict();
  EXPECT_EQ(differ.outvoted, std::vector{kThree});
  EXPECT_EQ(
      std::string(differ.what()),
      "the members compute different things in collective 0: step 35 on member 1 (paper) and member 2 (paper), and "
      "the comparison of states at step 34 on member 3 (paper)");
}

TEST(GroupProtocol, ALeaderThatComputesSomethingElseIsOutvoted) {
  const Purpose other{Purpose::Kind::evaluation, Step(35)};
  Claiming three({kOne, kTwo, kThree});
  three.hears(kTwo, Shape(2, {}, other));
  three.hears(kThree, Shape(2, {}, other));
  EXPECT_EQ(three.verdict().outvoted, std::vector{kOne});
}

TEST(GroupProtocol, OfTwoMembersNobodyKnowsWhichIsRight) {
  Claiming two({kOne, kTwo});
  two.hears(kTwo, Shape(2, {3}, {Purpose::Kind::step, Step(35)}));
  const MembersDiffer differ = two.verdict();
  EXPECT_TRUE(differ.outvoted.empty());
  EXPECT_NE(std::string(differ.what()).find("step 35 with other rows or shards on member 2"), std::string::npos)
      << differ.what();
}

}  // namespace
}  // namespace sinew::group::protocol
