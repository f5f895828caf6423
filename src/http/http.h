// The HTTP/1.1 server and client of the program: keep-alive, optional TLS, and a limit on every buffer and every wait.
//
// cluster/ (the coordinator) and web/ use this room; it knows no routes. Bodies of any size pass through in pieces. The
// server passes a request's body to a Sink, which an Admission function chose from the request's header. It pulls a
// response's body from a Source: it asks for the next piece when the client has taken the previous one.
//
// The implementation is Boost.Asio and Beast. No Asio type appears in this header, so other rooms do not pay for
// compiling it. A network failure is a return value, not an exception.
#pragma once

#include <atomic>
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

// Receives a request's body piece by piece. The server calls `take` on one of its threads and reads the next piece from
// the network after `take` has returned. If the client disconnects first, the sink is destroyed and no handler sees it.
class Sink {
 public:
  virtual ~Sink() = default;
  // A response ends the request: the server sends it and reads no more of the body.
  virtual std::optional<Response> take(std::string_view piece) = 0;
};

struct Request {
  std::string method = "GET";
  std::string target = "/";                  // path and query as sent
  std::string path = "/";                    // decoded, without the query; set by the server
  std::map<std::string, std::string> query;  // decoded; set by the server; a repeated name gives status 400
  // Further values of the query's names that occur more than once (only if Decision::repeatable allows them).
  std::map<std::string, std::vector<std::string>> repeated = {};
  Headers headers = {};
  std::string body = {};
  std::string peer = {};            // the client's address without its port; set by the server
  std::shared_ptr<Sink> sink = {};  // the sink that received the body; then `body` is empty
  // Becomes true when nobody waits for the answer any more: the client has left, or the time for the answer is over.
  // Set by the server; a handler that works long looks at it and stops.
  std::shared_ptr<const std::atomic<bool>> abandoned = {};
};

// Passes one piece of a body to the server. Call it once, from any thread, at once or later; an empty piece ends the
// body.
using Write = std::function<void(std::string piece)>;
// Produces a response's body. The server calls it on one of its threads: first when the header was sent, then each time
// the client has taken the previous piece. It must not block for long. Dropping a Write without calling it closes the
// connection. The server destroys the Source when the body is complete, the client has left, or the server ends.
using Source = std::function<void(Write)>;

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  Headers headers = {};  // additional headers
  Source source = {};    // produces the body, instead of `body`
  // The length of the source's body. Without it the source ends the body with an empty piece, or the server ends it
  // when the server shuts down.
  std::optional<uint64_t> source_bytes = {};
  // The server sends this body instead if it shuts down before the first piece of a source without a length.
  std::string body_at_shutdown = {};
  // The sender of the request is known (it has the secret, or a token). The server does not close its connection in
  // favour of others (ServerOptions::max_connections).
  bool known_client = false;
};

// ---- server --------------------------------------------------------------------------------------------------------

// Answers one request. Call it once, from any thread, at once or later (a long poll). Further calls, and calls after
// the client has left, do nothing. If a handler drops the Answer without calling it, the client gets status 500.
using Answer = std::function<void(Response)>;
using Handler = std::function<void(const Request&, Answer)>;  // runs on a server thread and must not block

// Decides how the server treats a request whose header has arrived.
struct Decision {
  std::optional<Response> refusal = {};               // sent at once, then the connection closes; the body is not read
  std::optional<size_t> max_body_bytes = {};          // nullopt: ServerOptions::max_body_bytes
  std::shared_ptr<Sink> sink = {};                    // null: the server collects the body in Request::body
  const std::set<std::string>* repeatable = nullptr;  // names that the query may repeat
  std::string sender = {};  // whose share of ServerOptions::max_body_memory the body takes; empty: the address's
};
using Admission = std::function<Decision(const Request& header)>;  // runs on a server thread and must not block

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;                   // 0: a free port
  size_t max_body_bytes = 1 << 20;     // a larger body gets status 413
  size_t max_header_bytes = 16 << 10;  // a larger header gets status 431
  double idle_seconds = 60;            // the server closes a connection that has no request for so long
  // The time limit for the first byte of a connection, for a header and for each 64 KiB of a body, which stops
  // slow-loris attacks. Exceeding it gets status 408, or the server closes the connection.
  double read_seconds = 10;
  // A request that is not answered within this time gets status 504. A body that went to a Sink extends the time in
  // proportion to its size.
  double answer_seconds = 120;
  // The time limit for a whole body that the server collects in memory, however steadily its bytes come. Exceeding it
  // gets status 408.
  double body_seconds = 120;
  // Bodies that the server holds in memory for all requests together, from their first byte until their answer. A
  // request beyond that gets status 503. One sender's bodies may take a quarter of it.
  size_t max_body_memory = size_t{512} << 20;
  // A connection is a stranger until a response on it has `known_client`. A new connection above a limit replaces the
  // oldest stranger: above max_connections_of_address one of the same address, above max_connections one of any
  // address. So idle strangers cannot keep clients out, however many they are. Known clients may use seven eighths of
  // max_connections, so that some are left for new ones.
  size_t max_connections = 4096;
  size_t max_connections_of_address = 0;  // 0: max_connections
  std::string certificate, key;           // PEM files; give both for TLS, or neither
  std::string shared_secret;          // instead of files: TLS from a secret that both sides have (base/shared_tls.h)
  double shutdown_grace_seconds = 2;  // how long the destructor waits for responses that are being sent
  bool await_answers = false;         // true: the destructor also waits for handlers that have not answered yet
  int threads = 1;
};

// Returns how many connections the process can have, at most `wanted`. Raises the process's soft limit of file
// descriptors for them.
size_t connection_limit(size_t wanted);

// Returns a response with content of `size` bytes, or with the part of it that a Range header asks for (RFC 9110, 14).
// The server sends it in pieces. The status is 304 if the client already has the content named by `tag` (without
// quotes; empty: no ETag). `read_at` fills `out` from an offset on and returns the number of bytes, or 0 on failure; it
// runs on a server thread.
using ReadAt = std::function<size_t(uint64_t offset, std::span<std::byte> out)>;
Response content_response(const Request& request, uint64_t size, ReadAt read_at, const std::string& content_type,
                          const std::string& tag);
// Returns content_response for the bytes of a file. Throws Error (HTTP_NO_FILE) if the file cannot be opened.
Response file_response(const Request& request, const std::string& path, const std::string& content_type,
                       const std::string& tag);

// Listens from construction to destruction. Throws Error when it cannot listen on the address (HTTP_CANNOT_LISTEN) or
// the options are wrong (HTTP_BAD_OPTIONS, HTTP_BAD_CERTIFICATE).
class Server {
 public:
  Server(const ServerOptions& options, Handler handler, Admission admission = {});
  // Stops accepting connections, waits up to shutdown_grace_seconds for responses that are being sent (with
  // await_answers: for all responses), ends bodies without a length, closes every connection and joins the threads.
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
  std::string what;  // a message: "cannot connect to 127.0.0.1:4711: Connection refused"
};

struct ClientOptions {
  size_t max_body_bytes = 16 << 20;
  std::string certificate_authority;  // PEM file of the authority to trust; empty: the system's
  std::string shared_secret;  // instead of a file: trust only a server that knows this secret (base/shared_tls.h)
};

// Keeps its connection to one server between calls. One thread at a time may use a client.
class Client {
 public:
  explicit Client(std::string url, ClientOptions options = {});  // "http://host:port" or "https://…"
  ~Client();
  Client(Client&&) noexcept;
  // Sends the request and returns the response of any status, all within `timeout_seconds`. If the server has closed
  // the kept connection and no byte of a response has arrived, the client connects again, once.
  std::expected<Response, Failure> send(const Request& request, double timeout_seconds);
  // Ends the current call, or the next one, with Kind::broken. Any thread may call it.
  void cancel();
  const std::string& url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the host of "http://host:port", an IPv6 address without its brackets, or "" if the text is no such URL.
std::string host_of(const std::string& url);
// Returns whether the host is "localhost" or a loopback address. Resolves no names.
bool is_loopback(const std::string& host);
// Returns whether the host is that, or an address of one of this machine's interfaces. Resolves no names.
bool is_this_machine(const std::string& host);

// Returns this machine's own address on the route to the server at `url`, so that the server's network can reach this
// machine. Resolves the server's name, but sends nothing to it. Returns "" if there is no route or `url` is not a URL.
std::string address_towards(const std::string& url);

}  // namespace sinew::http
