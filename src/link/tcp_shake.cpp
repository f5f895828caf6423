#include "link/tcp_shake.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/pinned_tls.h"
#include "link/tcp_connection.h"

namespace sinew::link {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;

constexpr const char* kNotOfThisRun = " did not prove that the run's coordinator admitted it";

awaitable<error_code> write(Stream& stream, std::span<const std::byte> bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const auto [code, count] = co_await asio::async_write(stream, buffer, kToken);
  co_return code;
}

awaitable<error_code> read(Stream& stream, std::span<std::byte> bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const auto [code, count] = co_await asio::async_read(stream, buffer, kToken);
  co_return code;
}

// Reads until the other end closes, so that the last message reaches it. If the socket were closed with unread bytes,
// the message would be lost.
awaitable<void> hear_out(Stream& stream) {
  error_code ignored;
  stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  std::array<std::byte, 256> rest;
  for (int i = 0; i < 16; ++i) {
    const auto [code, count] = co_await stream.async_read_some(asio::buffer(rest), kToken);
    if (code) co_return;
  }
}

awaitable<error_code> answer(Stream& stream, Verdict verdict, Proof proof) {
  std::array<std::byte, kVerdictBytes> bytes{static_cast<std::byte>(verdict)};
  std::copy(proof.begin(), proof.end(), bytes.begin() + 1);
  co_return co_await write(stream, bytes);
}

std::unexpected<std::string> no(std::string why) {
  return std::unexpected(std::move(why));
}

std::string broken(const error_code& code, const std::string& where) {
  return broken_by(code, where) + " during the handshake";
}

Hello hello_of(const ShakeTerms& terms, Role role, MemberId to) {
  Hello hello = make_hello(role, terms.me, to, terms.job, terms.tls != nullptr);
  hello.key = terms.key.public_key();
  hello.certificate = terms.certificate;
  return hello;
}

// Returns whether the coordinator of this run certified the sender's key.
bool is_certified(const Hello& hello, const ShakeTerms& terms) {
  return sinew::is_certified(terms.coordinator, hello.from, hello.key, hello.certificate);
}

}  // namespace

ShakeTls::ShakeTls(const KeyPair& key) : listener(new_tls_server(key)), dialler(new_tls_client(std::nullopt)) {}

awaitable<std::expected<void, std::string>> shake_as_dialler(Stream& stream, const ShakeTerms& terms, MemberId peer,
                                                             const std::string& where) {
  if (terms.tls != nullptr) {
    if (const error_code code = co_await stream.secure(terms.tls->dialler, Stream::Side::client)) {
      co_return no(broken_by(code, where) + " during the TLS handshake (does it run without TLS?)");
    }
  }
  const Hello mine = hello_of(terms, Role::dialler, peer);
  const auto hello = encode(mine);
  if (const error_code code = co_await write(stream, hello)) co_return no(broken(code, where));
  std::array<std::byte, kHelloBytes> bytes;
  const std::span<std::byte, kHelloBytes> all(bytes);
  if (const error_code code = co_await read(stream, all.first<kPrefixBytes>())) co_return no(broken(code, where));
  if (const auto trouble = prefix_trouble(all.first<kPrefixBytes>())) co_return no(where + " " + trouble->why);
  if (const error_code code = co_await read(stream, all.subspan<kPrefixBytes>())) co_return no(broken(code, where));
  const Hello theirs = decode(all);
  if (theirs.role != Role::listener) co_return no(where + " is no listener");
  if (theirs.job != mine.job) co_return no(where + " belongs to another job");
  if (theirs.wants_tls && !mine.wants_tls) co_return no(where + " wants TLS, and this member speaks in clear");
  if (theirs.from != peer) {
    co_return no(where + " is member " + std::to_string(theirs.from.value) + ", not " + std::to_string(peer.value));
  }
  // An end that has another key for TLS may pass on the hello of the real listener.
  const bool other_end = terms.tls != nullptr && stream.peer_key() != theirs.key;
  if (other_end || !is_certified(theirs, terms)) co_return no(where + kNotOfThisRun);
  const Proof proof = prove(terms.key, Role::dialler, mine, theirs);
  if (const error_code code = co_await write(stream, proof)) co_return no(broken(code, where));
  std::array<std::byte, kVerdictBytes> verdict;
  if (const error_code code = co_await read(stream, verdict)) co_return no(broken(code, where));
  const auto word = static_cast<uint8_t>(verdict[0]);
  if (word != static_cast<uint8_t>(Verdict::welcome)) co_return no(where + " " + meaning(word));
  if (!proves(std::span<const std::byte, kVerdictBytes>(verdict).subspan<1>(), Role::listener, mine, theirs)) {
    co_return no(where + kNotOfThisRun);
  }
  co_return std::expected<void, std::string>();
}

awaitable<std::expected<MemberId, std::string>> shake_as_listener(Stream& stream, const ShakeTerms& terms,
                                                                  const std::function<bool(MemberId)>& given_up) {
  bool secured = false;
  if (terms.tls != nullptr) secured = co_await stream.hears_tls();
  if (secured) {
    const error_code code = co_await stream.secure(terms.tls->listener, Stream::Side::server);
    if (code) co_return no(code.message());
  }
  std::array<std::byte, kHelloBytes> bytes;
  const std::span<std::byte, kHelloBytes> all(bytes);
  if (const error_code code = co_await read(stream, all.first<kPrefixBytes>())) co_return no(code.message());
  const auto trouble = prefix_trouble(all.first<kPrefixBytes>());
  if (trouble && trouble->stranger) co_return no(trouble->why);
  if (!trouble) {
    if (const error_code code = co_await read(stream, all.subspan<kPrefixBytes>())) co_return no(code.message());
  }
  const Hello theirs = trouble ? Hello() : decode(all);
  const Hello mine = hello_of(terms, Role::listener, theirs.from);
  const auto hello = encode(mine);
  if (const error_code code = co_await write(stream, hello)) co_return no(code.message());
  const bool unsafe = mine.wants_tls && !secured;  // this end's hello tells the dialler, and the handshake ends
  if (trouble || unsafe || theirs.job != mine.job || theirs.role != Role::dialler) {
    co_await hear_out(stream);
    co_return no(trouble ? trouble->why : unsafe ? "without TLS" : "another job");
  }
  Proof proof;
  if (const error_code code = co_await read(stream, proof)) co_return no(code.message());
  Verdict verdict = Verdict::welcome;
  if (!is_certified(theirs, terms) || !proves(proof, Role::dialler, theirs, mine)) {
    verdict = Verdict::not_proved;
  } else if (theirs.to != terms.me || theirs.from <= terms.me) {
    verdict = Verdict::wrong_member;
  } else if (given_up(theirs.from)) {
    verdict = Verdict::given_up;
  }
  const bool welcome = verdict == Verdict::welcome;
  const Proof own = welcome ? prove(terms.key, Role::listener, theirs, mine) : Proof{};
  if (const error_code code = co_await answer(stream, verdict, own)) co_return no(code.message());
  if (welcome) co_return theirs.from;
  co_await hear_out(stream);
  co_return no(meaning(static_cast<uint8_t>(verdict)));
}

}  // namespace sinew::link
