// Tests the limits on the memory for waiting frames (group_bounds.cpp).
#include <gtest/gtest.h>

#include "group/protocol_testing.h"

namespace sinew::group::protocol {
namespace {

TEST(GroupBounds, BoundsTheFramesKeptForLater) {
  Beside two;
  for (int i = 0; i < 100; ++i) two.group.on_frame(kOne, reduced_frame(9, i, "n", 0, 100));
  EXPECT_NE(why_out(two.group).find("does not fit"), std::string::npos);
  PaperLinks links;
  Group three(kThree, links, options(), system_clock());
  three.adopt(view_of(4, {kOne}, {kThree}));
  three.on_frame(kOne, report_frame(4, 0));
  for (int i = 0; i < 100; ++i) three.on_frame(kOne, reduced_frame(4, i, "", 0, 100));
  EXPECT_THROW(three.start_at(0, {}), Fenced);
}

// Without the limit, the results queued for the joiner would fill the sender's memory.
TEST(GroupBounds, ReportsASlowJoinerAndSendsItNoMore) {
  auto bounded = options();
  bounded.queue_bytes = 1000;
  bounded.handover_bytes = 1000;
  std::vector<std::pair<MemberId, std::string>> lost;
  bounded.on_lost = [&](MemberId member, const std::string& why) { lost.emplace_back(member, why); };
  PaperLinks links;
  links.stuck = kThree;
  Group one(kOne, links, bounded, system_clock());
  one.adopt(view_of(1, {kOne}, {kThree}));
  one.start_at(0, {0, 6});
  const auto collective = [&] {
    one.begin(1, {}, "");
    while (const auto shard = one.next_shard()) one.deliver(*shard, Leaf{{}, "x", nullptr});
    one.finish({});
  };
  collective();
  EXPECT_FALSE(links.to(kThree).empty());
  links.wait_for_it(2500);
  for (int i = 0; i < 5; ++i) collective();
  EXPECT_TRUE(links.to(kThree).empty());
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].first, kThree);
  EXPECT_NE(lost[0].second.find("too slowly"), std::string::npos);
  links.wait_for_it(0);
  one.adopt(view_of(2, {kOne}, {kThree}));  // the joiner stays in the view, so the member sends to it again
  collective();
  EXPECT_FALSE(links.to(kThree).empty());
}

// Returns the frames of a reduced result with this number of floats: one piece, and the head.
std::vector<link::Frame> large_result(int64_t generation, int64_t collective, int64_t floats, uint64_t before) {
  const Shape shape(2, {floats});
  const BlockHead head{shape.digest, 0, floats, 1, 1};
  const BlockDraft draft = draft_block(head, row_parts(shape, 0, floats), {true});
  std::fill_n(draft.values[0], floats, 1.0F);
  const ReducedHead small{shape.digest, 1, before, {{true}, true, "s", "n"}};
  return {frame(Kind::reduced_piece, generation, collective, *draft.bytes),
          frame(Kind::reduced_head, generation, collective, encode(small))};
}

TEST(GroupBounds, AJoinerReceivesAModelLargerThanTheBounds) {
  PaperLinks links;
  Group three(kThree, links, options(), system_clock());
  three.adopt(view_of(4, {kOne, kTwo}, {kThree}));
  three.on_frame(kOne, report_frame(4, 5));
  three.on_frame(kTwo, report_frame(4, 5));
  uint64_t history = 99;
  for (int64_t collective = 5; collective < 8; ++collective) {
    for (const link::Frame& one : large_result(4, collective, 5000, history)) three.on_frame(kOne, one);
    history = history_after(history, "n");
  }
  three.start_at(6, {6, 0}, history_after(99, "n"));
  std::vector<float> row(5000);
  for (int64_t collective = 6; collective < 8; ++collective) {
    three.begin(2, {5000}, "");
    EXPECT_EQ(three.next_shard(), std::nullopt);
    three.finish({row.data()});
  }
  EXPECT_EQ(row.back(), 1.0F);
}

TEST(GroupBounds, KeepsLargeFramesOfAViewThatComesLate) {
  Beside two;
  two.group.on_frame(kOne, reduced_frame(1, 0, "n", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  two.group.finish({});
  two.group.begin(2, {5000}, "");
  for (const link::Frame& one : large_result(2, 1, 5000, history_after(0, "n"))) two.group.on_frame(kOne, one);
  EXPECT_NO_THROW(two.group.turn());
  two.group.adopt(view_of(2, {kOne, kTwo}));
  two.group.on_frame(kOne, report_frame(2, 2));
  std::vector<float> row(5000);
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  two.group.finish({row.data()});
  EXPECT_EQ(row.front(), 1.0F);
}

}  // namespace
}  // namespace sinew::group::protocol
