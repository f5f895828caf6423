// Tests what can happen to links only on a network: strangers, members of other jobs, broken bytes, silence.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "link/handshake.h"
#include "link/sockets.h"
#include "link/testing.h"

namespace sinew::link {
namespace {

constexpr size_t kDiallerShakes = kHelloBytes + kProofBytes;  // bytes that a dialler sends before its first frame

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Tcp, OtherRunsAndJobsAreRefusedWithTheReason) {
  for (const bool other_job : {false, true}) {
    TcpOptions options = patient();
    if (other_job) options.job += "!";
    if (!other_job) options.credentials = self_certified("another run");
    const auto a = tcp_member(1, patient()), b = tcp_member(2, options);
    a->links().connect({b->peer()});
    b->links().connect({a->peer()});
    b->links().send(a->id(), frame_of(1));
    expect_loss(*b, a->id(), other_job ? "another job" : "did not prove that the run's coordinator admitted it");
    EXPECT_TRUE(a->frames(b->id()).empty());
    expect_service(*a, 3, patient());
  }
}

TEST(Tcp, PeersThatDoNotConnectInTimeAreLost) {
  const Listener silent;  // the kernel accepts the connection, but no program answers
  TcpOptions options = patient();
  options.connect_seconds = 0.3;
  const auto a = tcp_member(5, options);
  a->links().connect({{MemberId(9), "127.0.0.1:1"}, {MemberId(1), silent.address()}});
  expect_loss(*a, MemberId(9), "member 9 (127.0.0.1:1) did not connect in time");
  expect_loss(*a, MemberId(1), "no connection with " + silent.address() + " in time");
}

TEST(Tcp, AStrangerThatListensIsRefused) {
  const Listener listener;
  const auto b = tcp_member(2, patient());
  b->links().connect({{MemberId(1), listener.address()}});
  const Socket peer = listener.accept();
  ASSERT_TRUE(peer.write(as_bytes("HTTP/1.1 400 Bad Request\r\n\r\n")));
  expect_loss(*b, MemberId(1), "is no link");
}

TEST(Tcp, AnotherVersionIsReported) {
  const Listener listener;
  const auto b = tcp_member(2, patient());
  b->links().connect({{MemberId(1), listener.address()}});
  const Socket peer = listener.accept();
  auto hello = encode(make_hello(Role::listener, MemberId(1), MemberId(2), "digits"));
  hello[4] = std::byte{9};
  ASSERT_TRUE(peer.write(std::span(hello).first(kPrefixBytes)));
  expect_loss(*b, MemberId(1), "version 9");
}

TEST(Tcp, AListenerWithoutACertificateIsRefused) {
  const Listener listener;
  const auto b = tcp_member(2, patient());
  b->links().connect({{MemberId(1), listener.address()}});
  const Socket peer = listener.accept();
  ASSERT_TRUE(peer.write(encode(make_hello(Role::listener, MemberId(1), MemberId(2), patient().job))));
  expect_loss(*b, MemberId(1), "did not prove");
}

TEST(Tcp, AListenerWithACertificateThatItHasOnlySeenIsRefused) {
  const Listener listener;
  const auto b = tcp_member(2, patient());
  b->links().connect({{MemberId(1), listener.address()}});
  const Socket peer = listener.accept();
  ASSERT_TRUE(peer.write(encode(certified_hello(Role::listener, 1, 2, patient().credentials))));
  std::array<std::byte, kDiallerShakes> said{};
  for (size_t have = 0; have < said.size();) {
    const size_t count = peer.read_some(std::span(said).subspan(have));
    ASSERT_GT(count, 0U);
    have += count;
  }
  std::array<std::byte, kVerdictBytes> verdict{};  // "welcome", with the dialler's own proof instead of the listener's
  std::copy_n(said.begin() + kHelloBytes, kProofBytes, verdict.begin() + 1);
  ASSERT_TRUE(peer.write(verdict));
  expect_loss(*b, MemberId(1), "did not prove");
}

// A member that was admitted as 9 knows its own key and certificate, and has seen those of others. It claims to be 2.
TEST(Tcp, AMemberCannotTakeThePlaceOfAnother) {
  const MemberCredentials own = patient().credentials, victim = patient().credentials;
  for (const bool shows_the_victims_key : {false, true}) {
    const auto a = tcp_member(1, patient());
    a->links().connect({{MemberId(2), "127.0.0.1:1"}});  // a waits until member 2 dials
    const Socket peer = dial(a->links().address());
    Hello mine = certified_hello(Role::dialler, 9, 1, own);
    mine.from = MemberId(2);
    if (shows_the_victims_key) mine = certified_hello(Role::dialler, 2, 1, victim);
    ASSERT_TRUE(peer.write(encode(mine)));
    std::array<std::byte, kHelloBytes> bytes{};
    ASSERT_TRUE(peer.read(bytes));
    ASSERT_TRUE(peer.write(prove(own.key, Role::dialler, mine, decode(bytes))));
    std::array<std::byte, kVerdictBytes> verdict{};
    ASSERT_TRUE(peer.read(verdict));
    EXPECT_EQ(static_cast<Verdict>(verdict[0]), Verdict::not_proved);
    EXPECT_TRUE(a->frames(MemberId(2)).empty());
  }
}

TEST(Tcp, GarbageAndUnfinishedHandshakesDoNotBlockOthers) {
  const auto a = tcp_member(1, patient());
  std::vector<Socket> strangers;
  for (int i = 0; i < 400; ++i) {  // more than the limit of unfinished handshakes
    strangers.push_back(dial(a->links().address()));
    const auto hello = encode(make_hello(Role::dialler, MemberId(9), MemberId(1), patient().job));
    switch (i % 4) {
      case 0: break;  // sends nothing
      case 1: strangers.back().write(as_bytes("GET / HTTP/1.1\r\n\r\n")); break;
      case 2: strangers.back().write(std::span(hello).first(kPrefixBytes + 5)); break;
      default: strangers.back().write(hello); break;  // sends a hello, but no proof
    }
  }
  expect_service(*a, 2, patient());
  EXPECT_TRUE(a->losses(MemberId(9)).empty());
}

TEST(Tcp, UnfinishedHandshakesEndInTime) {
  TcpOptions options = patient();
  options.connect_seconds = 0.3;
  const auto a = tcp_member(1, options);
  const Socket idle = dial(a->links().address());
  std::array<std::byte, 10> bytes;
  EXPECT_EQ(idle.read_some(bytes), 0U);  // waits until a closes the connection
}

TEST(Tcp, AMemberThatIsNeverWantedIsRefused) {
  TcpOptions options = patient();
  options.connect_seconds = 0.3;
  const auto a = tcp_member(1, options), b = tcp_member(2, patient());
  b->links().connect({a->peer()});
  b->links().send(a->id(), frame_of(1));
  expect_loss(*b, a->id(), "by " + a->links().address());
  EXPECT_TRUE(a->frames(b->id()).empty() && a->losses(b->id()).empty());
}

// b dials a through a proxy that calls `meddle`, and sends three frames. Then `expect` runs.
void through_proxy(const TcpOptions& options, size_t piece, Proxy::Meddle meddle,
                   const std::function<void(Member& a, Member& b)>& expect) {
  const auto a = tcp_member(1, options), b = tcp_member(2, patient());
  Proxy proxy(a->links().address(), piece, std::move(meddle));
  a->links().connect({b->peer()});
  b->links().connect({{a->id(), proxy.address()}});
  for (int i = 0; i < 3; ++i) b->links().send(a->id(), frame_of(i, 0, 1000));
  proxy.open();  // now all frames are sent together, without a pulse between them
  expect(*a, *b);
  EXPECT_FALSE(a->late_frame());
}

TEST(Tcp, AnyFlippedBitIsALossWithAReason) {
  constexpr size_t kFrame = 1048;
  for (const size_t at : {size_t{0}, size_t{9}, size_t{20}, size_t{41}, size_t{46}, size_t{48}, size_t{1047}}) {
    const size_t target = kDiallerShakes + kFrame + at;
    through_proxy(
        patient(), 1 << 16,
        [target](std::vector<std::byte>& bytes, size_t before) {
          if (before <= target && target < before + bytes.size()) bytes[target - before] ^= std::byte{4};
          return true;
        },
        [&](Member& a, Member& b) {
          expect_loss(a, b.id(), at == 0 ? "no frame" : "checksum");
          ASSERT_EQ(a.frames(b.id()).size(), 1U);
          EXPECT_TRUE(same(a.frames(b.id())[0], frame_of(0, 0, 1000)));
          ASSERT_TRUE(b.await_loss(a.id()));
        });
  }
}

TEST(Tcp, ACutFrameIsNotDelivered) {
  for (const size_t kept : {size_t{1}, size_t{47}, size_t{48}, size_t{500}, size_t{1047}}) {
    const size_t end = kDiallerShakes + 2 * 1048 + kept;
    through_proxy(
        patient(), 1 << 16,
        [end](std::vector<std::byte>& bytes, size_t before) {
          const bool last = before + bytes.size() >= end;
          if (last) bytes.resize(end - before);
          return !last;
        },
        [](Member& a, Member& b) {
          expect_loss(a, b.id(), "connection ");
          EXPECT_EQ(a.frames(b.id()).size(), 2U);
          ASSERT_TRUE(b.await_loss(a.id()));
        });
  }
}

TEST(Tcp, TrickledBytesStillWork) {
  through_proxy(
      patient(), 7, [](std::vector<std::byte>&, size_t) { return true; },
      [](Member& a, Member& b) {
        ASSERT_TRUE(a.await_frames(b, 3));
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(a.frames(b.id())[static_cast<size_t>(i)], frame_of(i, 0, 1000)));
      });
}

TEST(Tcp, APeerThatTricklesIsLost) {
  TcpOptions options = patient();
  options.silence_seconds = 1;
  through_proxy(
      options, 1,
      [](std::vector<std::byte>&, size_t before) {
        if (before >= kDiallerShakes) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return true;
      },
      [](Member& a, Member& b) { expect_loss(a, b.id(), "bytes in 1 s from"); });
}

TEST(Tcp, OversizedPayloadsAreRefused) {
  TcpOptions options = patient();
  options.max_payload_bytes = 999;
  through_proxy(
      options, 1 << 16, [](std::vector<std::byte>&, size_t) { return true; },
      [](Member& a, Member& b) {
        expect_loss(a, b.id(), "1000 bytes, more than the 999 allowed");
        EXPECT_TRUE(a.frames(b.id()).empty());
        ASSERT_TRUE(b.await_loss(a.id()));
      });
}

TEST(Tcp, ASilentPeerIsLost) {
  TcpOptions options = patient();
  options.silence_seconds = 1;
  through_proxy(
      options, 1 << 16,
      [](std::vector<std::byte>& bytes, size_t before) {  // passes nothing on after the first frame
        const size_t end = kDiallerShakes + 1048;
        bytes.resize(std::min(bytes.size(), end - std::min(end, before)));
        return true;
      },
      [](Member& a, Member& b) {
        expect_loss(a, b.id(), "no sign of life");
        EXPECT_LE(a.frames(b.id()).size(), 1U);
      });
}

TEST(Tcp, PulsesKeepAnIdleConnection) {
  TcpOptions options = patient();
  options.silence_seconds = 5;
  std::atomic<size_t> passed = 0;
  through_proxy(
      options, 1 << 16,
      [&](std::vector<std::byte>& bytes, size_t) {
        passed += bytes.size();
        return true;
      },
      [&](Member& a, Member& b) {
        const size_t silence = kDiallerShakes + 3 * 1048 + size_t{7} * 48;  // seven pulses, one a second
        const auto limit = std::chrono::steady_clock::now() + kLong;
        while (passed < silence && std::chrono::steady_clock::now() < limit) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        EXPECT_GE(passed, silence);
        b.links().send(a.id(), frame_of(3));
        EXPECT_TRUE(a.await_frames(b, 4));
        EXPECT_TRUE(a.losses(b.id()).empty());
      });
}

TEST(Tcp, SentFramesArriveEvenIfTheSenderCloses) {
  for (int i = 0; i < 20; ++i) {
    const auto a = tcp_member(1, patient()), b = tcp_member(2, patient());
    a->links().connect({b->peer()});
    b->links().connect({a->peer()});
    for (int k = 0; k < 40; ++k) a->links().send(b->id(), frame_of(k, 0, 1000));
    const auto limit = std::chrono::steady_clock::now() + kLong;
    while (a->links().queued_bytes(b->id()) > 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit);
      std::this_thread::yield();
    }
    a->close();
    ASSERT_TRUE(b->await_loss(a->id()));
    EXPECT_EQ(b->frames(a->id()).size(), 40U);
  }
}

TEST(Tcp, BadAddressesAreLostAndBadOptionsThrow) {
  const auto a = tcp_member(5, patient());
  a->links().connect({{MemberId(1), "nonsense"}, {MemberId(2), "127.0.0.1:0"}, {MemberId(3), "127.0.0.1:99999"}});
  expect_loss(*a, MemberId(1), "no address");
  expect_loss(*a, MemberId(2), "no address");
  expect_loss(*a, MemberId(3), "no address");
  const auto refused = [](auto change) {
    TcpOptions options = patient();
    change(options);
    EXPECT_THROW(tcp_links(options, {[](MemberId, Frame) {}, [](MemberId, std::string) {}}), Error);
  };
  refused([](TcpOptions& options) { options.credentials.certificate = nullptr; });
  refused([](TcpOptions& options) { options.listen = "no.such.address.of.mine"; });
  refused([](TcpOptions& options) { options.listen = "203.0.113.1"; });
  refused([](TcpOptions& options) { options.listen = "0.0.0.0"; });
  refused([](TcpOptions& options) { options.connect_seconds = 0; });
}

TEST(Tcp, AdvertisedNamesAreDialled) {
  TcpOptions options = patient();
  options.listen = "0.0.0.0";
  options.advertise = "localhost";
  const auto a = tcp_member(1, options);
  EXPECT_EQ(a->links().address().substr(0, 10), "localhost:");
  expect_service(*a, 2, patient());
}

}  // namespace
}  // namespace sinew::link
