// The server over one store: it indexes run directories and serves them, with everything else in the store, over HTTP.
//
// cli/ (`sinew server`) uses it, and a program that trains may run it beside the training. This room installs no signal
// handlers, prints nothing and assumes no directory: locations, the log and the request to stop are arguments.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "http/http.h"

namespace sinew::server {

struct Options {
  std::string root;                   // directory whose run directories the server indexes
  std::string store;                  // path of a SQLite file, or a URL postgresql://...
  std::string artifacts;              // directory of the artifacts
  std::string tokens;                 // path of the token file; empty: every local caller is an admin
  std::string version;                // the version of the program; the API reports it
  double requests_per_second = 1000;  // requests that each caller may make in a second; 0: no limit
  http::ServerOptions http = {};
  // Hosts of other machines, with commas, whose coordinators the server may send control requests to, if a run's
  // directory names them.
  std::string coordinators = {};
  std::string access_log;  // path of the access log; empty: none. It has one line of JSON for each request
  // Receives each problem of the indexing once, and failed logins, as one line. Runs on a thread of the server.
  std::function<void(const std::string& line)> log = {};
};

// Serves from construction to destruction. Throws Error when it cannot start; SERVER_ALREADY_RUNNING when another
// server holds the store. `url` and `replaced` may be called on any thread.
class Server {
 public:
  explicit Server(Options options);
  // Completes the responses in progress (http::ServerOptions::shutdown_grace_seconds) and the run that is being
  // indexed, then releases the store.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  std::string url() const;  // "http://127.0.0.1:4711"
  // Returns why this server can no longer write, if another server has taken over the store. Returns "" otherwise.
  std::string replaced() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Waits until `stop_requested` returns true. Throws Error (SERVER_REPLACED) when another server has taken over the
// store. Calls `stop_requested` about ten times a second.
void wait(const Server& server, const std::function<bool()>& stop_requested);

// The options with which run_id_at() connects to a server and identifies itself.
struct ClientOptions {
  std::string token;                  // empty: no token
  std::string certificate_authority;  // PEM file; empty: the system's
};
// Returns the id under which the server at `url` knows the run in `run_directory`. Asks the server repeatedly for a few
// seconds, because the server indexes new runs about once a second. Returns the reason if it finds no id.
std::expected<std::string, std::string> run_id_at(const std::string& url, const ClientOptions& options,
                                                  const std::string& run_directory, const std::string& resolved_yaml,
                                                  Clock& clock);

}  // namespace sinew::server
