// The conformance suite: tests each implementation of links for what link.h promises.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/random.h"
#include "link/testing.h"

namespace sinew::link {
namespace {

// Makes links that can reach each other.
class World {
 public:
  virtual ~World() = default;
  virtual std::unique_ptr<Links> join(Events events) = 0;
  Member::Make make() {
    return [this](Events events) { return join(std::move(events)); };
  }
};

class MemoryWorld final : public World {
 public:
  std::unique_ptr<Links> join(Events events) override { return network_.join(std::move(events)); }

 private:
  MemoryNetwork network_;
};

class TcpWorld : public World {
 public:
  explicit TcpWorld(bool tls = false) : options_(patient()) { options_.tls = tls; }
  std::unique_ptr<Links> join(Events events) override { return tcp_links(options_, std::move(events)); }

 private:
  TcpOptions options_;
};

class TlsWorld final : public TcpWorld {
 public:
  TlsWorld() : TcpWorld(true) {}
};

struct Kind {
  const char* name;
  std::unique_ptr<World> (*make)();
};

class LinksTest : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Member> member(int64_t id, Member::Answer answer = nullptr) {
    return std::make_unique<Member>(id, world_->make(), std::move(answer));
  }
  const std::unique_ptr<World> world_ = GetParam().make();
};

TEST_P(LinksTest, FramesArriveWholeUnchangedAndInOrder) {
  const auto a = member(1), b = member(2);
  join_all({a.get(), b.get()});
  RandomStream random(random_key({1}));
  std::vector<Frame> sent;
  for (int64_t i = 0; i < 500; ++i) {
    sent.push_back(frame_of(i - 250, -i, random.below(4) == 0 ? random.below(100000) : random.below(40)));
    sent.back().kind = static_cast<uint16_t>(random.below(65536));
    sent.back().generation = Generation(static_cast<int64_t>(random.bits64()));
    (i % 2 == 0 ? a : b)->links().send((i % 2 == 0 ? b : a)->id(), sent.back());
  }
  ASSERT_TRUE(b->await_frames(*a, 250) && a->await_frames(*b, 250));
  const auto at_a = a->frames(b->id()), at_b = b->frames(a->id());
  ASSERT_EQ(at_a.size() + at_b.size(), 500U);
  for (size_t i = 0; i < 500; ++i) EXPECT_TRUE(same((i % 2 == 0 ? at_b : at_a)[i / 2], sent[i])) << i;
}

TEST_P(LinksTest, BothEndsCountTheBytesOfFrames) {
  const auto a = member(1), b = member(2);
  join_all({a.get(), b.get()});
  constexpr int64_t kFrames = 20, kPayload = 1000, kHeader = 48;
  for (int64_t i = 0; i < kFrames; ++i) a->links().send(b->id(), frame_of(i, 0, kPayload));
  b->links().send(a->id(), frame_of(0, 0, 0));
  ASSERT_TRUE(b->await_frames(*a, kFrames) && a->await_frames(*b, 1));
  const int64_t there = kFrames * (kHeader + kPayload);
  EXPECT_EQ(b->links().traffic().received_bytes, there);
  EXPECT_EQ(a->links().traffic().received_bytes, kHeader);
  // the sender learns a moment later that the network has taken the last frame
  const auto sent = [&] { return a->links().traffic().sent_bytes; };
  for (int i = 0; i < 1000 && sent() < there; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(sent(), there);
}

TEST_P(LinksTest, BigPayloadsTravelInBothDirections) {
  const auto a = member(1), b = member(2);
  join_all({a.get(), b.get()});
  const Frame there = frame_of(1, 0, 16 << 20), back = frame_of(2, 0, (16 << 20) + 13);
  for (int i = 0; i < 2; ++i) {
    a->links().send(b->id(), there);
    b->links().send(a->id(), back);
  }
  a->links().send(b->id(), frame_of(3));
  ASSERT_TRUE(b->await_frames(*a, 3) && a->await_frames(*b, 2));
  EXPECT_TRUE(same(b->frames(a->id())[1], there));
  EXPECT_TRUE(same(b->frames(a->id())[2], frame_of(3)));
  EXPECT_TRUE(same(a->frames(b->id())[1], back));
}

TEST_P(LinksTest, AFullMeshDeliversAllFramesInOrder) {
  constexpr size_t kMembers = 7, kFrames = 60;
  std::vector<std::unique_ptr<Member>> members;
  std::vector<Member*> all;
  for (size_t i = 0; i < kMembers; ++i) {
    members.push_back(member(static_cast<int64_t>(i) * 10));
    all.push_back(members.back().get());
  }
  join_all(all);
  std::vector<std::thread> threads;
  for (Member* from : all) {
    threads.emplace_back([&all, from] {
      for (size_t i = 0; i < kFrames; ++i) {
        for (const Member* to : all) {
          if (to != from) from->links().send(to->id(), frame_of(static_cast<int64_t>(i), from->id().value, i * 50));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Member* to : all) {
    for (const Member* from : all) {
      if (to == from) continue;
      ASSERT_TRUE(to->await_frames(*from, kFrames));
      const auto frames = to->frames(from->id());
      for (size_t i = 0; i < kFrames; ++i) {
        EXPECT_TRUE(same(frames[i], frame_of(static_cast<int64_t>(i), from->id().value, i * 50)));
      }
    }
    EXPECT_FALSE(to->overlapped());
  }
}

TEST_P(LinksTest, FramesWaitForAPeerThatComesLater) {
  const auto a = member(1), b = member(2);
  a->links().connect({b->peer()});
  for (int i = 0; i < 5; ++i) a->links().send(b->id(), frame_of(i, 0, 1000));
  EXPECT_GE(a->links().queued_bytes(b->id()), 5000U);
  EXPECT_TRUE(b->frames(a->id()).empty());
  b->links().connect({a->peer()});
  ASSERT_TRUE(b->await_frames(*a, 5));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(same(b->frames(a->id())[static_cast<size_t>(i)], frame_of(i, 0, 1000)));
}

TEST_P(LinksTest, FramesOfADiallerWaitUntilItIsWanted) {
  const auto a = member(1), b = member(2);
  b->links().connect({a->peer()});  // b dials, but a does not want b yet
  for (int i = 0; i < 5; ++i) b->links().send(a->id(), frame_of(i, 0, 1000));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(a->frames(b->id()).empty());
  a->links().connect({b->peer()});
  ASSERT_TRUE(a->await_frames(*b, 5));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(same(a->frames(b->id())[static_cast<size_t>(i)], frame_of(i, 0, 1000)));
}

TEST_P(LinksTest, ACloseIsReportedOnceAfterTheLastFrame) {
  for (const bool lower_closes : {false, true}) {
    const int64_t first = lower_closes ? 1 : 11;  // the second round uses other ids, because an id is never given twice
    const auto a = member(first), b = member(first + 1), c = member(first + 2);
    join_all({a.get(), b.get(), c.get()});
    Member& gone = lower_closes ? *a : *b;
    Member& stays = lower_closes ? *b : *a;
    for (int i = 0; i < 10; ++i) gone.links().send(stays.id(), frame_of(i, 0, 10000));
    ASSERT_TRUE(stays.await_frames(gone, 10));
    gone.close();
    ASSERT_TRUE(stays.await_loss(gone.id()) && c->await_loss(gone.id()));
    stays.links().send(gone.id(), frame_of(1));
    EXPECT_EQ(stays.links().queued_bytes(gone.id()), 0U);
    c->links().send(stays.id(), frame_of(77));  // the other links continue
    ASSERT_TRUE(stays.await_frames(*c, 1));
    EXPECT_EQ(stays.losses(gone.id()).size(), 1U);
    EXPECT_NE(stays.losses(gone.id())[0], "");
    EXPECT_TRUE(stays.losses(c->id()).empty());
    EXPECT_FALSE(stays.late_frame());
  }
}

TEST_P(LinksTest, ConnectDropsAPeerSilently) {
  const auto a = member(1), b = member(2), c = member(3);
  join_all({a.get(), b.get(), c.get()});
  a->links().send(b->id(), frame_of(1));
  b->links().send(a->id(), frame_of(1));
  ASSERT_TRUE(b->await_frames(*a, 1) && a->await_frames(*b, 1));
  a->links().connect({c->peer()});
  ASSERT_TRUE(b->await_loss(a->id()));  // b still wanted a
  a->links().send(b->id(), frame_of(2));
  a->links().send(c->id(), frame_of(3));
  c->links().send(a->id(), frame_of(4));
  ASSERT_TRUE(c->await_frames(*a, 1) && a->await_frames(*c, 1));
  EXPECT_TRUE(a->losses(b->id()).empty());
  EXPECT_EQ(b->losses(a->id()).size(), 1U);
  EXPECT_EQ(b->frames(a->id()).size(), 1U);
}

TEST_P(LinksTest, ALostPeerStaysLostWhileItIsWanted) {
  const auto a = member(1), b = member(2), c = member(3);
  join_all({a.get(), b.get(), c.get()});
  const Peer dead = b->peer();
  b->links().send(a->id(), frame_of(0));
  ASSERT_TRUE(a->await_frames(*b, 1));  // if this fails, a waits for b to dial until the deadline
  b->close();
  ASSERT_TRUE(a->await_loss(dead.id));
  const auto again = member(4);
  for (int i = 0; i < 3; ++i) a->links().connect({dead, c->peer(), again->peer()});
  again->links().connect({a->peer()});
  a->links().send(dead.id, frame_of(0));
  again->links().send(a->id(), frame_of(5));
  c->links().send(a->id(), frame_of(6));
  ASSERT_TRUE(a->await_frames(*again, 1) && a->await_frames(*c, 1));
  EXPECT_EQ(a->losses(dead.id).size(), 1U);
}

TEST_P(LinksTest, AMissingPeerIsLost) {
  const auto a = member(5);
  auto b = member(1);
  const Peer gone = b->peer();
  b->close();
  a->links().connect({gone});
  a->links().send(gone.id, frame_of(1, 0, 100));
  ASSERT_TRUE(a->await_loss(gone.id));
  EXPECT_EQ(a->links().queued_bytes(gone.id), 0U);
  EXPECT_EQ(a->losses(gone.id).size(), 1U);
}

TEST_P(LinksTest, AnotherMemberAtThePeersAddressIsRefused) {
  const auto a = member(5), b = member(2);
  b->links().connect({a->peer()});
  a->links().connect({{MemberId(3), b->links().address()}});
  ASSERT_TRUE(a->await_loss(MemberId(3)));
  EXPECT_EQ(a->losses(MemberId(3)).size(), 1U);
}

TEST_P(LinksTest, EventsMaySend) {
  const Member::Answer answer = [](Links& links, MemberId from, const Frame& frame) {
    if (frame.collective < 200) links.send(from, frame_of(frame.collective + 1, 0, 100));
  };
  const auto a = member(1, answer), b = member(2, answer);
  join_all({a.get(), b.get()});
  a->links().send(b->id(), frame_of(0));
  ASSERT_TRUE(b->await_frames(*a, 101) && a->await_frames(*b, 100));
  EXPECT_TRUE(same(b->frames(a->id())[100], frame_of(200, 0, 100)));
}

TEST_P(LinksTest, QueuedBytesFallToZeroOnceThePeerTakesThem) {
  const auto a = member(1), b = member(2);
  const Frame big = frame_of(1, 0, 1 << 20);
  EXPECT_EQ(a->links().queued_bytes(b->id()), 0U);
  a->links().connect({b->peer()});
  for (int i = 0; i < 50; ++i) a->links().send(b->id(), big);
  EXPECT_GE(a->links().queued_bytes(b->id()), size_t{50} << 20);
  b->links().connect({a->peer()});
  ASSERT_TRUE(b->await_frames(*a, 50));
  const auto limit = std::chrono::steady_clock::now() + kLong;
  while (a->links().queued_bytes(b->id()) > 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_EQ(a->links().queued_bytes(b->id()), 0U);
  EXPECT_EQ(a->links().queued_bytes(MemberId(99)), 0U);
}

TEST_P(LinksTest, MembersComeAndGoUnderTraffic) {
  std::atomic<bool> stop = false;
  const auto a = member(1000), b = member(1001);
  join_all({a.get(), b.get()});
  std::vector<std::thread> threads;
  std::atomic<int64_t> newest = 1;
  for (Member* from : {a.get(), b.get()}) {
    threads.emplace_back([&, from] {
      for (int64_t i = 0; !stop; ++i) {
        if (from->links().queued_bytes(MemberId(newest)) < (1 << 20)) {
          from->links().send(MemberId(newest), frame_of(i, 0, static_cast<size_t>(i % 5) * 3000));
        }
        std::this_thread::yield();
      }
    });
  }
  for (int64_t id = 1; id <= 20; ++id) {
    const auto c = member(id, [](Links& links, MemberId from, const Frame& frame) { links.send(from, frame); });
    newest = id;
    join_all({a.get(), b.get(), c.get()});
    ASSERT_TRUE(c->await_frames(*a, 3) && b->await_frames(*c, 3));
    c->close();
    ASSERT_TRUE(a->await_loss(c->id()) && b->await_loss(c->id()));
    EXPECT_EQ(a->losses(c->id()).size(), 1U);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(a->late_frame() || b->late_frame() || a->overlapped() || b->overlapped());
  EXPECT_TRUE(a->losses(b->id()).empty() && b->losses(a->id()).empty());
}

template <typename Made>
std::unique_ptr<World> make_world() {
  return std::make_unique<Made>();
}

INSTANTIATE_TEST_SUITE_P(All, LinksTest,
                         testing::Values(Kind{"Memory", make_world<MemoryWorld>}, Kind{"Tcp", make_world<TcpWorld>},
                                         Kind{"Tls", make_world<TlsWorld>}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace sinew::link
