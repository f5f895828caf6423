// The bytes of one connection, plain or through TLS: the same calls for server and client. Asio's types stop here and
// in the files that include this one.
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

// One read and one write may be under way at once; all calls and callbacks belong to the socket's executor. Callbacks
// never come inside the call, and after the socket is closed they come with an error. The pipe must outlive them.
class Pipe {
 public:
  using Done = std::function<void(const error_code&, size_t)>;
  virtual ~Pipe() = default;
  virtual void handshake(Done done) = 0;
  virtual void read_some(asio::mutable_buffer into, Done done) = 0;
  virtual void write_some(asio::const_buffer from, Done done) = 0;
  virtual tcp::socket& socket() = 0;
  virtual std::string distrust() const { return ""; }  // after a failed handshake: what is wrong with the certificate
};

// Keys and what is trusted; one for all connections.
struct Tls;
std::shared_ptr<Tls> server_tls(const ServerOptions& options);  // null: none was asked for; throws Error
std::expected<std::shared_ptr<Tls>, std::string> client_tls(const ClientOptions& options);

std::unique_ptr<Pipe> plain_pipe(tcp::socket socket);
std::unique_ptr<Pipe> server_pipe(tcp::socket socket, std::shared_ptr<Tls> tls);
// The certificate must be for `host`, a name or an IP address, unless a shared secret says who is trusted.
std::unique_ptr<Pipe> client_pipe(tcp::socket socket, std::shared_ptr<Tls> tls, const std::string& host);

// What a failed handshake shows of the other end.
bool spoke_http(const error_code& failure);  // a client: it began with a request, in clear
bool has_no_tls(const error_code& failure);  // a server: what it answered with is not TLS

// A number of seconds as a wait that can not overflow; not a number is no wait at all.
inline std::chrono::steady_clock::duration wait_of(double seconds) {
  constexpr double kLongest = 1e8;  // three years
  const double bounded = seconds > 0 ? (seconds < kLongest ? seconds : kLongest) : 0;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(bounded));
}

}  // namespace sinew::http
