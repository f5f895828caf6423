// The server for one store. It copies run directories into the store, and serves everything in the store over HTTP.
//
// cli/ (`sinew server`) uses it, and a program that trains may run it beside the training. This room installs no signal
// handlers, prints nothing and assumes no directory: the caller passes directories, the log and the request to stop as
// arguments.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/http.h"
#include "report/report.h"

namespace sinew::server {

struct Options {
  std::string root;                   // the server indexes the run directories below this directory
  std::string store;                  // path of a SQLite file, or a URL postgresql://...
  std::string artifacts;              // directory of the artifacts
  std::string tokens;                 // path of the token file; empty: every local caller is an admin
  std::string version;                // the version of the program; the API reports it
  double requests_per_second = 1000;  // requests that each caller may make in a second; 0: no limit
  http::ServerOptions http = {};
  // Names of other machines, separated by commas. The server may send control requests to coordinators on these
  // machines if a run's directory names them.
  std::string coordinators = {};
  std::string access_log;  // path of the access log, with one line of JSON for each request; empty: no log
  // Gets one line for each new problem of the indexing, and for failed logins. Called on a thread of the server.
  std::function<void(const std::string& line)> log = {};
};

// Serves from construction to destruction. Throws Error if it cannot start; the code is SERVER_ALREADY_RUNNING if
// another server holds the store. Any thread may call url() and replaced().
class Server {
 public:
  explicit Server(Options options);
  // Finishes the responses that are being sent (http::ServerOptions::shutdown_grace_seconds) and the run that is being
  // indexed. Then releases the store.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  std::string url() const;  // "http://127.0.0.1:4711"
  // If another server has taken over the store, returns why this one can no longer write. Returns "" otherwise.
  std::string replaced() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Waits until `stop_requested` returns true; calls it about ten times a second. Throws Error (SERVER_REPLACED) if
// another server takes over the store.
void wait(const Server& server, const std::function<bool()>& stop_requested);

// How the functions below connect to a server and identify themselves. They send the token only over HTTPS, or to a
// server on this machine.
struct ClientOptions {
  std::string token;                  // empty: no token
  std::string certificate_authority;  // PEM file; empty: the system's
};
// Returns the id under which the server at `url` knows the run in `run_directory`. Asks repeatedly for a few seconds,
// because the server indexes new runs about once a second. If it finds no id, returns the reason.
std::expected<std::string, std::string> run_id_at(const std::string& url, const ClientOptions& options,
                                                  const std::string& run_directory, const std::string& resolved_yaml,
                                                  Clock& clock);

// Returns the points that clients logged for a run: those of its metrics other than `except`, which the server read
// from the run's directory. "step", "samples" and "time" are called "mlflow/step" and so on, because a record has
// fields with these names. Takes at most kLoggedMetricsSeconds and kMostLoggedPoints points. If it gets none, returns
// the reason.
inline constexpr double kLoggedMetricsSeconds = 20;
inline constexpr int64_t kMostLoggedPoints = 1'000'000;
std::expected<report::LoggedMetrics, std::string> logged_metrics(const std::string& url, const ClientOptions& options,
                                                                 const std::string& run_id,
                                                                 const std::set<std::string>& except, Clock& clock);

}  // namespace sinew::server
