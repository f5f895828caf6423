// The HTTP API of `sinew server`: Sinew's own API, MLflow's REST API and Prometheus' text format. routes.cpp lists
// every route.
//
// server/ uses this room, and owns the store and the HTTP server. This room checks everything that comes from a client:
// its token and role, its rate, the size of its requests, and every text in them. When the API reports success for a
// change, the change is durable in the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/http.h"
#include "store/store.h"

namespace sinew::registry {
class Artifacts;
}

namespace sinew::web {

// The rights of a caller. Each role includes the rights of the roles before it.
enum class Role { kNone, kRead, kSubmit, kAdmin };
const char* to_string(Role role);
std::optional<Role> role_of(const std::string& word);

// ---- tokens --------------------------------------------------------------------------------------------------------

struct Token {
  std::string name;
  Role role = Role::kRead;
  std::string salt, hash;  // hash: SHA-256 of salt and secret; all in hex
  int64_t made_ms = 0;
};
// Reads a file of tokens. The file has hashes, not secrets, and only its owner can read it. Returns no tokens if the
// file is missing. Throws Error (SERVER_BAD_TOKEN_FILE) when it is malformed.
std::vector<Token> read_tokens(const std::string& path);
// Adds a token, or replaces the token of that name, and returns the secret, which is stored nowhere. Processes that
// change the file at the same time wait for one another. Throws Error (SERVER_BAD_TOKEN_NAME,
// SERVER_TOKEN_FILE_LOCKED).
std::string add_token(const std::string& path, const std::string& name, Role role, Clock& clock = system_clock());
bool remove_token(const std::string& path, const std::string& name);  // false if there is no such token
// Returns the token with that secret, or null if there is none. Compares with every token in constant time.
const Token* find_token(const std::vector<Token>& tokens, const std::string& secret);

// ---- the API -------------------------------------------------------------------------------------------------------

// A caller's request to a running training.
struct ControlRequest {
  std::string action;  // a name in cluster::request_kinds()
  double value = 0;    // valid for the action
  std::string reason;
};
// Passes a request to the run. If the function throws an Error, the API returns that Error to the caller.
using Control = std::function<void(const std::string& run_directory, const ControlRequest& request)>;

struct Options {
  store::Store* store = nullptr;             // must outlive the Api
  registry::Artifacts* artifacts = nullptr;  // must outlive the Api
  std::string runs_root;                     // the directory that contains the directories of indexed runs
  std::string version;                       // of the program
  std::string tokens;                        // path of the token file; empty: every local caller is an admin
  Control control = {};
  std::optional<store::HeldLease> lease = {};  // the API writes only while this lease is held
  double requests_per_second = 1000;           // limit for each caller; 0: no limit
  size_t max_upload_bytes = 1ull << 40;        // of one artifact
  // Schemes of places outside this server from which a version may come: the client of whoever loads the version
  // fetches its files there, so a path of its own machine, or any address on the web, is not accepted.
  std::set<std::string> source_schemes = {"s3", "gs", "abfss", "wasbs", "hdfs"};
  int threads = 16;  // number of threads that may wait for the store
  Clock* clock = &system_clock();
};

class Api {
 public:
  explicit Api(Options options);
  ~Api();
  // The arguments for http::Server. The Api must outlive that server.
  http::Handler handler();
  http::Admission admission();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The OpenAPI 3.1 description of all routes: the content of docs/reference/openapi.json.
std::string openapi_text();

}  // namespace sinew::web
