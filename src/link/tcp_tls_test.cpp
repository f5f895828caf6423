// Tests what TLS adds to links: nobody else can read or change the bytes, and an end without TLS learns why it is
// refused.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <mutex>

#include "base/pinned_tls.h"
#include "link/handshake.h"
#include "link/sockets.h"
#include "link/testing.h"

namespace sinew::link {
namespace {

TcpOptions with_tls() {
  TcpOptions options = patient();
  options.tls = true;
  return options;
}

// b dials a. Expects that b loses a, that the reason contains `words`, and that no frame arrives.
void expect_refusal(const TcpOptions& listener, const TcpOptions& dialler, const std::string& words) {
  const auto a = tcp_member(1, listener), b = tcp_member(2, dialler);
  a->links().connect({b->peer()});
  b->links().connect({a->peer()});
  a->links().send(b->id(), frame_of(1));
  b->links().send(a->id(), frame_of(2));
  expect_loss(*b, a->id(), words);
  EXPECT_TRUE(a->frames(b->id()).empty() && b->frames(a->id()).empty());
}

TEST(Tls, OtherRunsAndJobsAreRefusedWithTheReason) {
  TcpOptions run = with_tls(), job = with_tls();
  run.credentials = self_certified("another run");
  job.job += "!";
  expect_refusal(with_tls(), run, "did not prove that the run's coordinator admitted it");
  expect_refusal(with_tls(), job, "another job");
}

TEST(Tls, AnEndWithoutTlsIsRefusedWithTheReason) {
  expect_refusal(with_tls(), patient(), "wants TLS, and this member speaks in clear");
  expect_refusal(patient(), with_tls(), "(does it run without TLS?)");
}

// An attacker on the network takes b's connection. The attacker has seen the hello of the real listener, but has for
// TLS only a key of its own.
TEST(Tls, AListenerWithTheHelloOfAnotherIsRefused) {
  const Listener listener;
  const auto b = tcp_member(2, with_tls());
  b->links().connect({{MemberId(1), listener.address()}});
  const Socket peer = listener.accept();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(new_tls_server(KeyPair::random()), &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> stream(SSL_new(context.get()), &SSL_free);
  ASSERT_EQ(SSL_set_fd(stream.get(), peer.get()), 1);
  ASSERT_EQ(SSL_accept(stream.get()), 1);
  std::array<std::byte, kHelloBytes> bytes{};
  ASSERT_EQ(SSL_read(stream.get(), bytes.data(), static_cast<int>(bytes.size())), static_cast<int>(bytes.size()));
  Hello seen = certified_hello(Role::listener, 1, 2, patient().credentials);
  seen.wants_tls = true;
  const auto hello = encode(seen);
  ASSERT_EQ(SSL_write(stream.get(), hello.data(), static_cast<int>(hello.size())), static_cast<int>(hello.size()));
  expect_loss(*b, MemberId(1), "did not prove");
  EXPECT_LE(SSL_read(stream.get(), bytes.data(), static_cast<int>(bytes.size())), 0) << "b sends no proof";
}

// b dials a through a proxy that calls `meddle`, and sends three frames. Then `expect` runs.
void through_proxy(Proxy::Meddle meddle, const std::function<void(Member& a, Member& b)>& expect) {
  const auto a = tcp_member(1, with_tls()), b = tcp_member(2, with_tls());
  Proxy proxy(a->links().address(), 1 << 16, std::move(meddle));
  a->links().connect({b->peer()});
  b->links().connect({{a->id(), proxy.address()}});
  for (int i = 0; i < 3; ++i) b->links().send(a->id(), frame_of(i, 0, 100'000));
  proxy.open();
  expect(*a, *b);
  EXPECT_FALSE(a->late_frame());
}

bool has(const std::vector<std::byte>& bytes, std::string_view word) {
  const auto* text = reinterpret_cast<const std::byte*>(word.data());
  return std::search(bytes.begin(), bytes.end(), text, text + word.size()) != bytes.end();
}

TEST(Tls, TheBytesCannotBeRead) {
  std::mutex mutex;
  std::vector<std::byte> passed;
  through_proxy(
      [&](std::vector<std::byte>& bytes, size_t) {
        const std::lock_guard lock(mutex);
        passed.insert(passed.end(), bytes.begin(), bytes.end());
        return true;
      },
      [&](Member& a, Member& b) {
        ASSERT_TRUE(a.await_frames(b, 3));
        const std::lock_guard lock(mutex);
        ASSERT_GT(passed.size(), size_t{300'000});
        EXPECT_FALSE(has(passed, "SNWL") || has(passed, "SNWF"));
        const Frame first = frame_of(0, 0, 100'000);
        const auto begin = first.payload->begin();
        EXPECT_EQ(std::search(passed.begin(), passed.end(), begin, begin + 16), passed.end());
      });
}

TEST(Tls, AnyFlippedBitIsALoss) {
  // The position decides what the flipped bit damages: the key exchange, the proof of the keys, or a frame.
  for (const size_t target : {size_t{60}, size_t{400}, size_t{5'000}, size_t{150'000}}) {
    through_proxy(
        [target](std::vector<std::byte>& bytes, size_t before) {
          if (before <= target && target < before + bytes.size()) bytes[target - before] ^= std::byte{4};
          return true;
        },
        [&](Member& a, Member& b) {
          ASSERT_TRUE(b.await_loss(a.id()));
          EXPECT_NE(b.losses(a.id())[0], "");
          const auto frames = a.frames(b.id());
          EXPECT_LT(frames.size(), 3U);
          for (size_t i = 0; i < frames.size(); ++i) {
            EXPECT_TRUE(same(frames[i], frame_of(static_cast<int64_t>(i), 0, 100'000)));
          }
        });
  }
}

TEST(Tls, ACutConnectionIsALoss) {
  through_proxy(
      [](std::vector<std::byte>& bytes, size_t before) {
        const bool last = before + bytes.size() >= 150'000;
        if (last) bytes.resize(150'000 - before);
        return !last;
      },
      [](Member& a, Member& b) {
        expect_loss(a, b.id(), "connection ");
        EXPECT_LE(a.frames(b.id()).size(), 1U);
        ASSERT_TRUE(b.await_loss(a.id()));
      });
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

TEST(Tls, GarbageAndUnfinishedHandshakesDoNotBlockOthers) {
  const auto a = tcp_member(1, with_tls());
  std::vector<Socket> strangers;
  // The beginning of a ClientHello of 512 bytes. The test never sends the rest.
  const std::string_view begun("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  const auto hello = encode(make_hello(Role::dialler, MemberId(9), MemberId(1), patient().job));
  for (int i = 0; i < 400; ++i) {  // more than the limit of unfinished handshakes
    strangers.push_back(dial(a->links().address()));
    switch (i % 5) {
      case 0: break;  // sends nothing
      case 1: strangers.back().write(bytes_of(begun.substr(0, 1))); break;
      case 2: strangers.back().write(bytes_of(begun)); break;
      case 3: strangers.back().write(bytes_of("GET / HTTP/1.1\r\n\r\n")); break;
      default: strangers.back().write(hello); break;  // without TLS
    }
  }
  expect_service(*a, 2, with_tls());
  EXPECT_TRUE(a->losses(MemberId(9)).empty());
}

TEST(Tls, UnfinishedHandshakesEndInTime) {
  TcpOptions options = with_tls();
  options.connect_seconds = 0.3;
  const auto a = tcp_member(1, options);
  const Socket idle = dial(a->links().address()), begun = dial(a->links().address());
  ASSERT_TRUE(begun.write(bytes_of("\x16\x03\x01")));
  std::array<std::byte, 10> bytes;
  EXPECT_EQ(idle.read_some(bytes), 0U);  // waits until a closes the connection
  while (begun.read_some(bytes) > 0) continue;
}

TEST(Tls, ASilentListenerIsLostInTime) {
  const Listener silent;  // the kernel accepts the connection, but no program answers
  TcpOptions options = with_tls();
  options.connect_seconds = 0.3;
  const auto a = tcp_member(5, options);
  a->links().connect({{MemberId(1), silent.address()}});
  expect_loss(*a, MemberId(1), "no connection with " + silent.address() + " in time");
}

}  // namespace
}  // namespace sinew::link
