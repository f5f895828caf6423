#include "link/tcp_stream.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/pinned_tls.h"

namespace sinew::link {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr unsigned char kTlsHandshake = 22;  // first byte of a TLS handshake record

}  // namespace

asio::awaitable<bool> Stream::hears_tls() {
  unsigned char first = 0;
  error_code result;
  socket_.non_blocking(true, result);
  do {
    const auto [code] = co_await socket_.async_wait(tcp::socket::wait_read, kToken);
    if (code) co_return false;
    socket_.receive(asio::buffer(&first, 1), tcp::socket::message_peek, result);
  } while (result == asio::error::would_block);
  co_return !result && first == kTlsHandshake;
}

asio::awaitable<error_code> Stream::secure(asio::ssl::context& tls, Side side) {
  tls_.emplace(socket_, tls);
  const auto [code] = co_await tls_->async_handshake(side, kToken);
  co_return code;
}

std::optional<PublicKey> Stream::peer_key() {
  return tls_ ? tls_peer_key(tls_->native_handle()) : std::nullopt;
}

}  // namespace sinew::link
