// Tests what only the network in memory offers: killing a member and cutting a cable.
#include <gtest/gtest.h>

#include <thread>

#include "link/testing.h"

namespace sinew::link {
namespace {

class MemoryNetworkTest : public testing::Test {
 protected:
  std::unique_ptr<Member> member(int64_t id) {
    return std::make_unique<Member>(id, [this](Events events) { return network_.join(std::move(events)); });
  }
  MemoryNetwork network_;
};

TEST_F(MemoryNetworkTest, NoFrameOfAKilledMemberArrivesAfterItsLoss) {
  for (int64_t round = 0; round < 50; ++round) {
    const auto a = member(10 * round + 1), b = member(10 * round + 2), c = member(10 * round + 3);
    join_all({a.get(), b.get(), c.get()});
    std::thread sender([&] {
      for (int i = 0; i < 200; ++i) {
        b->links().send(a->id(), frame_of(i));
        a->links().send(b->id(), frame_of(i));
      }
    });
    ASSERT_TRUE(a->await_frames(*b, static_cast<size_t>(round) % 5));
    network_.kill(b->id());
    ASSERT_TRUE(a->await_loss(b->id()) && c->await_loss(b->id()));
    sender.join();
    a->links().send(c->id(), frame_of(1));
    c->links().send(a->id(), frame_of(1));
    ASSERT_TRUE(a->await_frames(*c, 1) && c->await_frames(*a, 1));
    EXPECT_FALSE(a->late_frame());
    EXPECT_EQ(a->losses(b->id()).size(), 1U);
    EXPECT_TRUE(b->losses(a->id()).empty());  // a killed member gets no events
    const auto frames = a->frames(b->id());
    for (size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(frames[i].collective, static_cast<int64_t>(i));  // no gaps
  }
}

TEST_F(MemoryNetworkTest, ACutIsPermanentAndALossOnBothSides) {
  const auto a = member(1), b = member(2), c = member(3);
  join_all({a.get(), b.get(), c.get()});
  network_.cut(a->id(), b->id());
  network_.cut(b->id(), a->id());
  ASSERT_TRUE(a->await_loss(b->id()) && b->await_loss(a->id()));
  a->links().connect({c->peer()});
  a->links().connect({b->peer(), c->peer()});  // b is wanted again, but the cable stays cut
  c->links().send(a->id(), frame_of(1));
  ASSERT_TRUE(a->await_frames(*c, 1));
  c->links().send(b->id(), frame_of(1));
  ASSERT_TRUE(b->await_frames(*c, 1));
  EXPECT_EQ(a->losses(b->id()).size(), 2U);
  EXPECT_EQ(b->losses(a->id()).size(), 1U);
  EXPECT_TRUE(c->losses(a->id()).empty() && c->losses(b->id()).empty());
}

TEST_F(MemoryNetworkTest, KillingAnUnknownMemberDoesNothing) {
  network_.kill(MemberId(5));
  network_.cut(MemberId(5), MemberId(6));
  const auto a = member(1), b = member(2);
  join_all({a.get(), b.get()});
  a->links().send(b->id(), frame_of(1));
  EXPECT_TRUE(b->await_frames(*a, 1));
}

}  // namespace
}  // namespace sinew::link
