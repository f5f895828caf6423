// Tests one member against scripted frames: what it does when the members' states differ.
#include <gtest/gtest.h>

#include "group/protocol_testing.h"

namespace sinew::group::protocol {
namespace {

constexpr Mark kRight{.step = 3, .part = 0, .digest = {7, 7}}, kWrong{.step = 3, .part = 0, .digest = {7, 8}};

link::Frame result_with(const std::vector<MemberMark>& marks, uint64_t before = 0, bool compare = false) {
  ReducedHead reduced;
  reduced.shape = Shape(2, {}).digest;
  reduced.before = before;
  reduced.reduced.any = true;
  reduced.reduced.marks = marks;
  reduced.reduced.compare = compare;
  return frame(Kind::reduced_head, 1, 0, encode(reduced));
}

// Member 2 takes part in collective 0 beside members 1 and 3, with a mark of its own. Or member 3 joins members 1 and
// 2.
struct Marked {
  PaperLinks links;
  Group group;
  explicit Marked(Mark mark, bool joins = false) : group(joins ? kThree : kTwo, links, options(), system_clock()) {
    group.adopt(joins ? view_of(1, {kOne, kTwo}, {kThree}) : view_of(1, {kOne, kTwo, kThree}));
    if (joins) {
      group.on_frame(kOne, report_frame(1, 0));
      group.on_frame(kTwo, report_frame(1, 0));
      group.start_at(0, {0, 77}, 0);
    } else {
      group.start_at(0, {0, 77});
      group.on_frame(kOne, report_frame(1, 0, false, Origin{0, 77}));
      group.on_frame(kThree, report_frame(1, 0, false, Origin{0, 77}));
    }
    group.begin(2, {}, "", mark);
  }
  std::optional<ShardIndex> after(const std::vector<MemberMark>& marks) {
    group.on_frame(kOne, result_with(marks));
    return group.next_shard();
  }
};

TEST(GroupMarks, EqualMarksChangeNothing) {
  Marked two(kRight);
  EXPECT_EQ(two.after({{kOne, kRight}, {kTwo, kRight}, {kThree, kRight}}), std::nullopt);
  EXPECT_EQ(two.group.finish({}).marks.size(), 3U);
  EXPECT_FALSE(two.group.compared());  // only a part of the state was compared
}

TEST(GroupMarks, EveryMemberLearnsWhoIsOutvoted) {
  for (const Mark mine : {kRight, kWrong}) {
    Marked two(mine);
    const Mark other = mine == kRight ? kWrong : kRight;
    try {
      two.after({{kOne, kRight}, {kTwo, mine}, {kThree, mine == kRight ? kWrong : kRight}});
      FAIL();
    } catch (const MembersDiffer& differ) {
      EXPECT_EQ(differ.code, ErrorCode("GROUP_MEMBERS_DIVERGED"));
      EXPECT_EQ(differ.outvoted, std::vector{mine == kRight ? kThree : kTwo});
      EXPECT_NE(std::string(differ.what()).find(to_hex(mine.digest)), std::string::npos) << differ.what();
      EXPECT_NE(std::string(differ.what()).find(to_hex(other.digest)), std::string::npos) << differ.what();
    }
    EXPECT_THROW(two.group.finish({}), MembersDiffer);  // nobody can use the result
  }
}

TEST(GroupMarks, WithoutAMajorityNobodyIsOutvoted) {
  Marked two(kRight);
  try {
    two.after({{kTwo, kRight}, {kThree, kWrong}});
    FAIL();
  } catch (const MembersDiffer& differ) {
    EXPECT_TRUE(differ.outvoted.empty());
    EXPECT_FALSE(differ.hint.empty());
  }
}

TEST(GroupMarks, AMemberWithoutTheGroupsStateGoes) {
  Marked joiner(kWrong, true);
  try {
    joiner.after({{kOne, kRight}, {kTwo, kRight}});
    FAIL();
  } catch (const Fenced& out) {
    EXPECT_TRUE(std::string(out.what()).starts_with("member 3 does not have the group's state: ")) << out.what();
  }
  Marked right(kRight, true);
  EXPECT_EQ(right.after({{kOne, kRight}, {kTwo, kRight}}), std::nullopt);
}

TEST(GroupMarks, AMarkOfTheWholeStateProvesAJoiner) {
  constexpr Mark kAll{.step = 3, .part = Mark::kWhole, .digest = {7, 7}};
  Marked joiner(kAll, true);
  EXPECT_FALSE(joiner.group.compared());
  EXPECT_EQ(joiner.after({{kOne, kAll}, {kTwo, kAll}}), std::nullopt);
  joiner.group.finish({});
  EXPECT_TRUE(joiner.group.compared());
  Marked unheard(kAll, true);  // no other member gave a mark
  EXPECT_EQ(unheard.after({}), std::nullopt);
  unheard.group.finish({});
  EXPECT_FALSE(unheard.group.compared());
}

// Takes the member's turns in the open collective, and returns the small sums that it sends to the leader.
SmallSums sums_of(Marked& member) {
  while (member.group.turn().kind != Group::Turn::Kind::idle) {
  }
  for (const link::Frame& one : member.links.to(kOne)) {
    if (one.kind == static_cast<uint16_t>(Kind::small)) return *decode_small_sums(*one.payload);
  }
  ADD_FAILURE() << "nothing was sent";
  return {};
}

TEST(GroupMarks, ARequestToCompareIsRepeatedUntilAResultHasIt) {
  Marked two(kRight);
  two.group.ask_to_compare();  // too late for the open collective
  std::vector<MemberMark> all = {{kOne, kRight}, {kTwo, kRight}, {kThree, kRight}};
  EXPECT_EQ(two.after(all), std::nullopt);
  EXPECT_FALSE(two.group.finish({}).compare);
  two.group.begin(2, {}, "", kRight);
  for (auto turn = two.group.turn(); turn.kind == Group::Turn::Kind::shard; turn = two.group.turn())
    two.group.deliver(turn.shard, std::nullopt);
  const SmallSums sums = sums_of(two);
  EXPECT_TRUE(sums.compare);
  EXPECT_EQ(sums.mark, kRight);
}

TEST(GroupMarks, TheHistoryTellsWhetherAComparisonFollows) {
  EXPECT_NE(history_after(5, "n", true), history_after(5, "n", false));
  for (const bool compare : {false, true}) {
    Marked two(kRight);
    two.group.on_frame(kOne, result_with({{kOne, kRight}, {kTwo, kRight}}, 0, compare));
    EXPECT_EQ(two.group.next_shard(), std::nullopt);
    EXPECT_EQ(two.group.finish({}).compare, compare);
    EXPECT_EQ(two.group.history(), history_after(0, "", compare));
  }
}

}  // namespace
}  // namespace sinew::group::protocol
