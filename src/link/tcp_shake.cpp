#include "link/tcp_shake.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "link/tcp_connection.h"

namespace sinew::link {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using Trouble = std::optional<std::string>;

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

awaitable<error_code> write(tcp::socket& socket, std::span<const std::byte> bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const auto [code, count] = co_await asio::async_write(socket, buffer, kToken);
  co_return code;
}

awaitable<error_code> read(tcp::socket& socket, std::span<std::byte> bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const auto [code, count] = co_await asio::async_read(socket, buffer, kToken);
  co_return code;
}

// Lets the other end read what was said last: closing with unread bytes would take it back.
awaitable<void> hear_out(tcp::socket& socket) {
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  std::array<std::byte, 256> rest;
  for (int i = 0; i < 16; ++i) {
    const auto [code, count] = co_await socket.async_read_some(asio::buffer(rest), kToken);
    if (code) co_return;
  }
}

awaitable<error_code> answer(tcp::socket& socket, Verdict verdict, Proof proof) {
  std::array<std::byte, kVerdictBytes> bytes{static_cast<std::byte>(verdict)};
  std::copy(proof.begin(), proof.end(), bytes.begin() + 1);
  co_return co_await write(socket, bytes);
}

std::unexpected<std::string> no(std::string why) {
  return std::unexpected(std::move(why));
}

std::string broken(const error_code& code, const std::string& where) {
  return broken_by(code, where) + " during the handshake";
}

}  // namespace

awaitable<std::expected<void, std::string>> shake_as_dialler(tcp::socket& socket, const ShakeTerms& terms,
                                                             MemberId peer, const std::string& where) {
  const Hello mine = make_hello(Role::dialler, terms.me, peer, terms.job);
  const auto hello = encode(mine);
  if (const error_code code = co_await write(socket, hello)) co_return no(broken(code, where));
  std::array<std::byte, kHelloBytes> bytes;
  const std::span<std::byte, kHelloBytes> all(bytes);
  if (const error_code code = co_await read(socket, all.first<kPrefixBytes>())) co_return no(broken(code, where));
  if (const auto trouble = prefix_trouble(all.first<kPrefixBytes>())) co_return no(where + " " + trouble->why);
  if (const error_code code = co_await read(socket, all.subspan<kPrefixBytes>())) co_return no(broken(code, where));
  const Hello theirs = decode(all);
  if (theirs.role != Role::listener) co_return no(where + " is no listener");
  if (theirs.job != mine.job) co_return no(where + " belongs to another job");
  if (theirs.from != peer) {
    co_return no(where + " is member " + std::to_string(theirs.from.value) + ", not " + std::to_string(peer.value));
  }
  const Proof proof = prove(terms.secret, Role::dialler, mine, theirs);
  if (const error_code code = co_await write(socket, proof)) co_return no(broken(code, where));
  std::array<std::byte, kVerdictBytes> verdict;
  if (const error_code code = co_await read(socket, verdict)) co_return no(broken(code, where));
  const auto word = static_cast<uint8_t>(verdict[0]);
  if (word != static_cast<uint8_t>(Verdict::welcome)) co_return no(where + " " + meaning(word));
  const Proof expected = prove(terms.secret, Role::listener, mine, theirs);
  if (!equal(expected, std::span<const std::byte, kVerdictBytes>(verdict).subspan<1>())) {
    co_return no(where + " does not know the secret");
  }
  co_return std::expected<void, std::string>();
}

awaitable<std::expected<MemberId, std::string>> shake_as_listener(tcp::socket& socket, const ShakeTerms& terms,
                                                                  const std::function<bool(MemberId)>& given_up) {
  std::array<std::byte, kHelloBytes> bytes;
  const std::span<std::byte, kHelloBytes> all(bytes);
  if (const error_code code = co_await read(socket, all.first<kPrefixBytes>())) co_return no(code.message());
  const auto trouble = prefix_trouble(all.first<kPrefixBytes>());
  if (trouble && trouble->stranger) co_return no(trouble->why);
  if (!trouble) {
    if (const error_code code = co_await read(socket, all.subspan<kPrefixBytes>())) co_return no(code.message());
  }
  const Hello theirs = trouble ? Hello() : decode(all);
  const Hello mine = make_hello(Role::listener, terms.me, theirs.from, terms.job);
  const auto hello = encode(mine);
  if (const error_code code = co_await write(socket, hello)) co_return no(code.message());
  if (trouble || theirs.job != mine.job || theirs.role != Role::dialler) {
    co_await hear_out(socket);
    co_return no(trouble ? trouble->why : "another job");
  }
  Proof proof;
  if (const error_code code = co_await read(socket, proof)) co_return no(code.message());
  const Proof expected = prove(terms.secret, Role::dialler, theirs, mine);
  Verdict verdict = Verdict::welcome;
  if (!equal(expected, proof)) {
    verdict = Verdict::wrong_secret;
  } else if (theirs.to != terms.me || theirs.from <= terms.me) {
    verdict = Verdict::wrong_member;
  } else if (given_up(theirs.from)) {
    verdict = Verdict::given_up;
  }
  const bool welcome = verdict == Verdict::welcome;
  const Proof own = welcome ? prove(terms.secret, Role::listener, theirs, mine) : Proof{};
  if (const error_code code = co_await answer(socket, verdict, own)) co_return no(code.message());
  if (welcome) co_return theirs.from;
  co_await hear_out(socket);
  co_return no(meaning(static_cast<uint8_t>(verdict)));
}

}  // namespace sinew::link
