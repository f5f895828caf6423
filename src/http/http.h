// The one HTTP server and client: HTTP/1.1 with keep-alive, TLS on request, bounded everywhere. Knows no routes.
//
// For cluster/ (coordinator) and web/. Bodies of any size pass through in pieces, both ways: a request's to a Sink that
// a Gate chose from its header, a response's from a Source that is asked for the next piece when one was taken.
// Boost.Asio + Beast behind a wall: no Asio type stands in this header, so only http/'s own files pay for it. Every
// wait has a bound; no call throws for what the network does (that is a value).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::http {

using Headers = std::map<std::string, std::string>;  // names in lower case

struct Response;

// Takes a request's body as it comes. Called on a server thread, one piece at a time; the next is not read from the
// network before it returns. Destroyed without a handler having seen it: the client left.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual std::optional<Response> take(std::string_view piece) = 0;  // a response: it is answered now, no more is read
};

struct Request {
  std::string method = "GET";
  std::string target = "/";                  // as sent, path and query
  std::string path = "/";                    // decoded, without the query; filled by the server
  std::map<std::string, std::string> query;  // decoded; filled by the server; a name twice is a 400
  // Names of the query that Intake::repeatable allows more than once: what comes after the first.
  std::map<std::string, std::vector<std::string>> repeated = {};
  Headers headers = {};
  std::string body = {};
  std::string peer = {};            // the client's address, without its port; filled by the server
  std::shared_ptr<Sink> sink = {};  // what took the body instead
};

// One call with the next piece of a body, from any thread, now or later; an empty one ends it.
using Give = std::function<void(std::string piece)>;
// Called on a server thread, the first time when the header was sent, then whenever the client has taken what was given
// before; it must not block for long. A Give dropped without a call breaks the connection off. Destroyed when all was
// given, or the client left, or the server ends.
using Source = std::function<void(Give)>;

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  Headers headers = {};  // further ones
  Source source = {};    // instead of `body`
  std::optional<uint64_t> source_bytes =
      {};                     // in all; without it the end is where the source says, or the server's end
  std::string if_ended = {};  // of a source without a length: the body, if the server ends before its first piece
};

// ---- server --------------------------------------------------------------------------------------------------------

// Call once, from any thread, now or later (a long poll): the answer of one request. Calls after the first, or after
// the client left, do nothing. A request whose Answer is dropped without a call is answered with 500.
using Answer = std::function<void(Response)>;
using Handler = std::function<void(const Request&, Answer)>;  // called on a server thread; must not block

// What becomes of a request, decided when only its header is there.
struct Intake {
  std::optional<Response> refusal = {};               // answered now, and the connection closed; the body is not read
  std::optional<size_t> max_body_bytes = {};          // else the server's
  std::shared_ptr<Sink> sink = {};                    // null: the body is kept whole, in the request
  const std::set<std::string>* repeatable = nullptr;  // names the query may have more than once
};
using Gate = std::function<Intake(const Request& header)>;  // called on a server thread; must not block

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;                   // 0: a free one
  size_t max_body_bytes = 1 << 20;     // larger ones are answered with 413
  size_t max_header_bytes = 16 << 10;  // larger ones with 431
  double idle_seconds = 60;            // a connection without a request is closed
  double read_seconds = 10;            // for a header, and each 64 KiB of a body (no slow-loris); else 408, or closed
  double answer_seconds = 120;    // a request not answered by then gets 504; what a Sink took has longer, by its size
  size_t max_connections = 4096;  // more are accepted and closed at once
  std::string certificate, key;   // PEM files; both or none: TLS
  std::string shared_secret;      // instead of files: TLS by what server and clients share (base/shared_tls.h)
  double farewell_seconds = 2;    // for answers under way when the server ends
  bool await_answers = false;     // then also for those a handler has not given yet; else they are given up
  int threads = 1;
};

// So many connections are possible, at most `wanted`; the process's soft limit of descriptors is raised for them.
size_t room_for_connections(size_t wanted);

// Contents of that many bytes, or the part a Range header asks for (RFC 9110, 14), in pieces and never held whole; 304
// when the client has what `tag` names already. `tag`: of the contents, without quotes; empty: none. `read_at` fills
// `out` from an offset on and returns how much it gave, 0 when it can not: it is called on a server thread.
using ReadAt = std::function<size_t(uint64_t offset, std::span<std::byte> out)>;
Response content_response(const Request& request, uint64_t size, ReadAt read_at, const std::string& content_type,
                          const std::string& tag);
// The same of a file. Throws Error if it can not be opened.
Response file_response(const Request& request, const std::string& path, const std::string& content_type,
                       const std::string& tag);

// Listens from construction to destruction. Throws Error when the address can not be listened on.
class Server {
 public:
  Server(const ServerOptions& options, Handler handler, Gate gate = {});
  // Stops accepting, lets answers under way (with await_answers: all that are still to be given) come to their end for
  // farewell_seconds, ends bodies without a length, closes every connection, joins its threads.
  ~Server();
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
