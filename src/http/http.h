// An HTTP/1.1 server and client with keep-alive, optional TLS, and a limit on every buffer and every wait.
//
// cluster/ (the coordinator) and web/ use this room; it knows no routes. Bodies of any size pass through in pieces. A
// request's body goes to a Sink, which an Admission function chose from the request's header. A response's body comes
// from a Source: the server asks it for the next piece when it has sent the previous one.
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

#include "base/key_pair.h"

namespace sinew::http {

using Headers = std::map<std::string, std::string>;  // names in lower case

struct Response;

// Receives a request's body piece by piece. The server calls `take` on one of its threads, and reads the next piece
// from the network only after `take` has returned. If the client disconnects before the end of the body, the server
// destroys the sink and calls no handler.
class Sink {
 public:
  virtual ~Sink() = default;
  // Returns nullopt to go on. A response refuses the request: the server sends it and does not pass on the rest of the
  // body.
  virtual std::optional<Response> take(std::string_view piece) = 0;
};

struct Request {
  std::string method = "GET";
  std::string target = "/";                  // path and query as sent
  std::string path = "/";                    // decoded, without the query; set by the server
  std::map<std::string, std::string> query;  // decoded; set by the server; a repeated name gives status 400
  // If a name may occur several times in the query (Decision::repeatable): its values after the first.
  std::map<std::string, std::vector<std::string>> repeated = {};
  Headers headers = {};
  std::string body = {};
  std::string peer = {};            // the client's address without its port; set by the server
  std::shared_ptr<Sink> sink = {};  // the sink that received the body; `body` is then empty
  // The server sets it to true when nobody waits for the answer any more: the client has left, or the time for the
  // answer is over. A handler that works long checks it and stops.
  std::shared_ptr<const std::atomic<bool>> abandoned = {};
};

// Passes one piece of a body to the server. Call it exactly once, from any thread, during the call of the Source or
// later. An empty piece ends the body.
using Write = std::function<void(std::string piece)>;
// Produces a response's body. The server calls it on one of its threads: first when the header was sent, and again each
// time a piece was sent. It must not block for long. Dropping a Write without calling it closes the connection. The
// server destroys the Source when the body is complete, the client has left, or the server ends.
using Source = std::function<void(Write)>;

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  Headers headers = {};  // additional headers
  Source source = {};    // produces the body; `body` is then ignored
  // The length of the source's body. Without a length, the body ends when the source gives an empty piece or the server
  // shuts down.
  std::optional<uint64_t> source_bytes = {};
  // If the server shuts down before a source without a length has given its first piece, the server sends this body
  // instead.
  std::string body_at_shutdown = {};
  // The server keeps it until the body was sent or can no longer be sent. So the handler knows how much memory answers
  // take that slow clients have not read yet.
  std::shared_ptr<const void> until_sent = {};
  // True if the sender of the request is known: it has the secret or a token. The server does not close the connection
  // of a known client in favour of others (ServerOptions::max_connections).
  bool known_client = false;
};

// ---- server --------------------------------------------------------------------------------------------------------

// Answers one request. Call it once, from any thread, during the handler's call or later (a long poll). Further calls,
// and calls after the client has left, do nothing. If a handler drops the Answer without calling it, the client gets
// status 500.
using Answer = std::function<void(Response)>;
using Handler = std::function<void(const Request&, Answer)>;  // runs on a server thread and must not block

// Decides how the server treats a request whose header has arrived.
struct Decision {
  // sent at once, after which the connection closes; the body is not read
  std::optional<Response> refusal = {};
  std::optional<size_t> max_body_bytes = {};          // nullopt: ServerOptions::max_body_bytes
  std::shared_ptr<Sink> sink = {};                    // null: the server collects the body in Request::body
  const std::set<std::string>* repeatable = nullptr;  // names that the query may repeat
  // whose share of ServerOptions::max_body_memory the body uses; empty: that of the client's address
  std::string sender = {};
};
using Admission = std::function<Decision(const Request& header)>;  // runs on a server thread and must not block

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;                   // 0: a free port
  size_t max_body_bytes = 1 << 20;     // a larger body gets status 413
  size_t max_header_bytes = 16 << 10;  // a larger header gets status 431
  double idle_seconds = 60;            // the server closes a connection on which no request begins for this long
  // The time limit for the first byte of a connection, for a header, and for each 64 KiB of a body. It stops slow-loris
  // attacks. A client that exceeds it gets status 408, or the server closes its connection.
  double read_seconds = 10;
  // If a handler does not answer within this time, the client gets status 504. A body that went to a Sink extends the
  // time in proportion to the body's size.
  double answer_seconds = 120;
  // The time limit for a whole body that the server collects in memory, even if its bytes arrive steadily. A client
  // that exceeds it gets status 408.
  double body_seconds = 120;
  // The total size of the bodies that the server holds in memory, from their first byte until their answer. A request
  // that would exceed it gets status 503. The bodies of one sender may take a quarter of it, or max_body_bytes if that
  // is more.
  size_t max_body_memory = size_t{512} << 20;
  // A connection is a stranger until a response on it has `known_client`. A new connection above a limit replaces the
  // oldest stranger: one of the same address above max_connections_of_address, one of any address above
  // max_connections. So even many idle strangers cannot keep clients out. Known clients may use seven eighths of
  // max_connections, so that some connections are left for new clients.
  size_t max_connections = 4096;
  size_t max_connections_of_address = 0;  // 0: max_connections
  std::string certificate, key;           // PEM files; give both for TLS, or neither
  std::optional<KeyPair> own_key;         // instead of files: a key that the clients know (base/pinned_tls.h)
  double shutdown_grace_seconds = 2;      // how long the destructor waits for responses that are being sent
  bool await_answers = false;  // true: the destructor waits as long for handlers that have not answered yet, too
  int threads = 1;
};

// Returns how many connections the process can have, at most `wanted`. If necessary, raises the process's soft limit of
// file descriptors.
size_t connection_limit(size_t wanted);

// Returns a response with content of `size` bytes, or with the part of it that a Range header asks for (RFC 9110,
// section 14). The server sends the content in pieces. `tag` names the content, without quotes; empty: no ETag. The
// status is 304 if the client already has the content of this tag. `read_at` runs on a server thread. It fills `out`
// with the bytes from an offset on, and returns their number, or 0 on failure.
using ReadAt = std::function<size_t(uint64_t offset, std::span<std::byte> out)>;
Response content_response(const Request& request, uint64_t size, ReadAt read_at, const std::string& content_type,
                          const std::string& tag);
// Like content_response, for the bytes of a file. Throws Error (HTTP_NO_FILE) if the path cannot be opened or is not a
// regular file.
Response file_response(const Request& request, const std::string& path, const std::string& content_type,
                       const std::string& tag);

// Listens from construction to destruction. The constructor throws Error if it cannot listen on the address
// (HTTP_CANNOT_LISTEN) or the options are wrong (HTTP_BAD_OPTIONS, HTTP_BAD_CERTIFICATE).
class Server {
 public:
  Server(const ServerOptions& options, Handler handler, Admission admission = {});
  // Stops accepting connections and ends bodies without a length. Waits up to shutdown_grace_seconds for responses that
  // are being sent; with await_answers, for all responses. Then closes every connection and joins the threads.
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
  std::string certificate_authority;    // PEM file of the authority to trust; empty: the system's
  std::optional<PublicKey> server_key;  // instead of a file: trust only the server with this key (base/pinned_tls.h)
};

// Keeps its connection to one server between calls. One thread at a time may use a client.
class Client {
 public:
  explicit Client(std::string url, ClientOptions options = {});  // "http://host:port" or "https://…"
  ~Client();
  Client(Client&&) noexcept;
  // Sends the request and returns the response, whatever its status. All of this takes at most `timeout_seconds`. If
  // the server has closed the kept connection and no byte of a response has arrived, the client connects again, once.
  std::expected<Response, Failure> send(const Request& request, double timeout_seconds);
  // Ends the call of send() that is under way, or else the next one, with Kind::broken. Any thread may call it.
  void cancel();
  const std::string& url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Encodes every byte that is not a letter, a digit or one of "-._~", so that the text can be a value in a query.
std::string percent_encode(std::string_view text);

// Returns the host of "http://host:port" (an IPv6 address without its brackets), or "" if the text is not such a URL.
std::string host_of(const std::string& url);
// Returns the port of such a URL: that of the scheme if the URL names none. Returns 0 if the text is not such a URL.
uint16_t port_of(const std::string& url);
// Returns the URL with this host, a name or an address, instead of its own. Returns a text that is not such a URL as it
// is.
std::string with_host(const std::string& url, const std::string& host);
// Returns whether the host is "localhost" or a loopback address. Resolves no names.
bool is_loopback(const std::string& host);
// Returns whether is_loopback(host) holds or the host is an address of one of this machine's interfaces. Resolves no
// names.
bool is_this_machine(const std::string& host);

// Returns this machine's address on the route to the server at `url`, at which the server's network can reach this
// machine. Resolves the server's name, but sends nothing to the server. Returns "" if there is no route or `url` is not
// a URL.
std::string address_towards(const std::string& url);

}  // namespace sinew::http
