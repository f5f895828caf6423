// The one HTTP server and client: HTTP/1.1 with keep-alive, TLS on request, bounded everywhere. Knows no routes.
//
// For cluster/ (coordinator), and later web/. Boost.Asio + Beast behind a wall: no Asio type stands in this header, so
// only http/'s own files pay for it. Every wait has a bound; no call throws for what the network does (that is a
// value).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace sinew::http {

using Headers = std::map<std::string, std::string>;  // names in lower case

struct Request {
  std::string method = "GET";
  std::string target = "/";                  // as sent, path and query
  std::string path = "/";                    // decoded, without the query; filled by the server
  std::map<std::string, std::string> query;  // decoded; filled by the server; a name twice is a 400
  Headers headers;
  std::string body;
};

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  Headers headers;  // further ones
};

// ---- server --------------------------------------------------------------------------------------------------------

// Call once, from any thread, now or later (a long poll): the answer of one request. Calls after the first, or after
// the client left, do nothing. A request whose Answer is dropped without a call is answered with 500.
using Answer = std::function<void(Response)>;
using Handler = std::function<void(const Request&, Answer)>;  // called on a server thread; must not block

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;                   // 0: a free one
  size_t max_body_bytes = 1 << 20;     // larger ones are answered with 413
  size_t max_header_bytes = 16 << 10;  // larger ones with 431
  double idle_seconds = 60;            // a connection without a request is closed
  double read_seconds = 10;            // a request that trickles slower is closed (no slow-loris)
  double answer_seconds = 120;         // a request not answered by then gets 504
  size_t max_connections = 4096;       // more are accepted and closed at once
  std::string certificate, key;        // PEM files; both or none: TLS
  std::string shared_secret;           // instead of files: TLS by what server and clients share (base/shared_tls.h)
  int threads = 1;
};

// Listens from construction to destruction. Throws Error when the address can not be listened on.
class Server {
 public:
  Server(const ServerOptions& options, Handler handler);
  ~Server();  // stops accepting, closes every connection, joins its threads
  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:4711"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- client --------------------------------------------------------------------------------------------------------

struct Failure {
  enum class Kind { refused, timeout, broken, too_large, bad_url, tls };
  Kind kind = Kind::broken;
  std::string what;  // a sentence: "cannot connect to 127.0.0.1:4711: Connection refused"
};

struct ClientOptions {
  size_t max_body_bytes = 16 << 20;
  std::string certificate_authority;  // PEM file that vouches for the server; empty: the system's
  std::string shared_secret;          // instead: only a server that knows it is trusted (base/shared_tls.h)
};

// Keeps its connection to one server between calls. One thread at a time.
class Client {
 public:
  explicit Client(std::string url, ClientOptions options = {});  // "http://host:port" or "https://…"
  ~Client();
  Client(Client&&) noexcept;
  // The whole exchange within `timeout_seconds`. A kept connection that turns out closed before any byte of an answer
  // came is opened anew, once. Any status is a Response.
  std::expected<Response, Failure> send(const Request& request, double timeout_seconds);
  // From any thread: the call under way, or the next one, ends at once with Kind::broken.
  void cancel();
  const std::string& url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The address of this machine from which that server is reached: where its network finds this machine. Sends nothing to
// it; looks a name up if there is one. Empty: there is no way to it, or this is no URL.
std::string address_towards(const std::string& url);

}  // namespace sinew::http
