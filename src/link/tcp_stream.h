// The bytes of one connection: in clear, or inside TLS once both ends agreed on it. For whoever reads and writes a
// Stream is what a socket is. Does not move: TLS holds on to its socket.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <optional>
#include <utility>

namespace sinew::link {

class Stream {
 public:
  using executor_type = boost::asio::ip::tcp::socket::executor_type;
  using Side = boost::asio::ssl::stream_base::handshake_type;

  explicit Stream(boost::asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  Stream(const Stream&) = delete;

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  executor_type get_executor() { return socket_.get_executor(); }

  // Waits for the first byte: does the other end begin a TLS handshake? Takes nothing.
  boost::asio::awaitable<bool> hears_tls();
  // From now on all goes through TLS. After an error the stream is of no use.
  boost::asio::awaitable<boost::system::error_code> secure(boost::asio::ssl::context& tls, Side side);
  bool stranger();  // the other end showed that it does not know the secret

  // Nothing is ever read past the end of TLS: a peer that goes, goes without saying so, as without TLS. What a cut can
  // hide is the rest of a frame, and who is cut off is lost anyway.
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
