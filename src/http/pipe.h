// Inside http/: a Pipe is the byte stream of one connection, plain or TLS. Server and client use the same interface.
// Only this file and files that include it see Asio's types.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "http/http.h"

namespace sinew::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// One read and one write may be pending at the same time. All calls and callbacks run on the socket's executor. A
// callback never runs inside the call that registers it. When the socket is closed, pending callbacks run with an
// error. The pipe must outlive its callbacks.
class Pipe {
 public:
  using Done = std::function<void(const error_code&, size_t)>;
  virtual ~Pipe() = default;
  virtual void handshake(Done done) = 0;
  virtual void read_some(asio::mutable_buffer into, Done done) = 0;
  virtual void write_some(asio::const_buffer from, Done done) = 0;
  virtual tcp::socket& socket() = 0;
  // why the certificate was refused; call it after a failed handshake
  virtual std::string certificate_error() const { return ""; }
};

// The keys of a server or client, and the certificates that it trusts. All its connections share one object.
struct Tls;
// Returns null if the options ask for no TLS. Throws Error (HTTP_BAD_CERTIFICATE) if the certificate or its key cannot
// be used.
std::shared_ptr<Tls> server_tls(const ServerOptions& options);
std::expected<std::shared_ptr<Tls>, std::string> client_tls(const ClientOptions& options);

std::unique_ptr<Pipe> plain_pipe(tcp::socket socket);
std::unique_ptr<Pipe> server_pipe(tcp::socket socket, std::shared_ptr<Tls> tls);
// The server's certificate must be valid for `host`, a name or an IP address. With a server_key, it must instead
// have that key.
std::unique_ptr<Pipe> client_pipe(tcp::socket socket, std::shared_ptr<Tls> tls, const std::string& host);

// These functions tell why a handshake failed.
bool peer_sent_http(const error_code& failure);    // the client sent a plain HTTP request
bool peer_sent_no_tls(const error_code& failure);  // the server's response is not TLS

// Converts seconds to a duration that cannot overflow. A negative number or NaN becomes 0.
inline std::chrono::steady_clock::duration to_duration(double seconds) {
  constexpr double kLongest = 1e8;  // three years
  const double bounded = seconds > 0 ? (seconds < kLongest ? seconds : kLongest) : 0;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(bounded));
}

}  // namespace sinew::http
