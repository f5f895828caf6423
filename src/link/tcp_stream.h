// A Stream carries the bytes of one connection: plain, or inside TLS once both ends have agreed on it. It is read and
// written like a socket. It cannot be moved, because TLS keeps a reference to its socket.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

#include "base/key_pair.h"

namespace sinew::link {

// With this token, a coroutine gets the error code as a value and not as an exception.
inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable);

class Stream {
 public:
  using executor_type = boost::asio::ip::tcp::socket::executor_type;
  using Side = boost::asio::ssl::stream_base::handshake_type;

  explicit Stream(boost::asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  Stream(const Stream&) = delete;

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  executor_type get_executor() { return socket_.get_executor(); }

  // Waits for the first byte and returns whether it begins a TLS handshake. The byte stays in the socket.
  boost::asio::awaitable<bool> hears_tls();
  // Switches the stream to TLS. After an error the stream cannot be used.
  boost::asio::awaitable<boost::system::error_code> secure(boost::asio::ssl::context& tls, Side side);
  std::optional<PublicKey> peer_key();  // the key that the listener has shown by TLS

  // A peer may close a TLS connection without close_notify, which TLS reports as truncation. That is harmless: an
  // attacker who cuts the connection can only hide the rest of a frame, and the connection is lost in any case.
  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Token>(token));
    return socket_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Token>(token));
    return socket_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
};

}  // namespace sinew::link
