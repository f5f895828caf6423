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

// The name of every caller of a server without tokens. No token has it, or it would own what these callers created.
inline constexpr const char* kLocalCaller = "local";
// What a token allows, and how much.
struct TokenRights {
  Role role = Role::kRead;
  // Patterns of the names or ids of the experiments, and of the names of the models, that the token may change; "*"
  // matches any text. A token reads everything.
  std::vector<std::string> experiments = {"*"}, models = {"*"};
  int64_t expires_ms = 0;            // milliseconds since 1970; 0: never
  double requests_per_second = 0;    // 0: the server's limit
  int64_t upload_bytes = 0;          // of one file; 0: the server's limit
  int64_t upload_bytes_per_day = 0;  // of all files; 0: no limit
};
struct Token {
  std::string name;
  TokenRights rights;
  std::string salt, hash;  // hash: SHA-256 of salt and secret; all in hex
  int64_t made_ms = 0;
  // After a rotation the secret before it works until this time.
  std::string salt_before, hash_before;
  int64_t before_until_ms = 0;
};
// Reads a file of tokens. The file has hashes, not secrets, and only its owner can read it. Returns no tokens if the
// file is missing. Throws Error (SERVER_BAD_TOKEN_FILE) when it is malformed.
std::vector<Token> read_tokens(const std::string& path);
// Adds a token, or replaces the token of that name, and returns the secret. If `secret_file` is given, first writes the
// secret to that file, which only its owner can read; otherwise the secret is stored nowhere. Processes that change the
// file at the same time wait for one another. Throws Error (SERVER_BAD_TOKEN_NAME, SERVER_BAD_TOKEN_SCOPE,
// SERVER_TOKEN_FILE_LOCKED).
std::string add_token(const std::string& path, const std::string& name, const TokenRights& rights,
                      const std::string& secret_file = "", Clock& clock = system_clock());
inline std::string add_token(const std::string& path, const std::string& name, Role role) {
  TokenRights rights;
  rights.role = role;
  return add_token(path, name, rights);
}
// Gives the token a new secret and returns it. The secret before it works for `overlap_seconds` more. With `expires_ms`
// (0: never) the token gets another end. Throws Error (SERVER_NO_TOKEN).
std::string rotate_token(const std::string& path, const std::string& name, double overlap_seconds,
                         std::optional<int64_t> expires_ms = {}, const std::string& secret_file = "",
                         Clock& clock = system_clock());
bool remove_token(const std::string& path, const std::string& name);  // false if there is no such token
// Returns the token with that secret, or null if there is none or it has expired. Compares with every token in constant
// time.
const Token* find_token(const std::vector<Token>& tokens, const std::string& secret, int64_t now_ms);
// Returns the patterns in a list with commas.
std::vector<std::string> scope_of(const std::string& list);
// Returns whether one of the patterns matches the text.
bool fits_scope(const std::vector<std::string>& patterns, const std::string& text);
// Returns one line for users: what the token allows and how long.
std::string to_string(const Token& token);

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
  std::string version;                       // the version of the program
  std::string tokens;                        // path of the token file; empty: every local caller is an admin
  Control control = {};
  // Receives each finished request as one line of JSON, and each warning (logins that fail) as a sentence. Both may be
  // empty; any thread calls them. No line contains a secret, a query or a body.
  std::function<void(const std::string&line)> access_log = {}, log = {};
  std::optional<store::HeldLease> lease = {};  // the API writes only while this lease is held
  double requests_per_second = 1000;           // limit for each caller; 0: no limit
  size_t max_upload_bytes = 1ull << 40;        // of one artifact
  // Schemes of places outside this server from which a version may come: the client of whoever loads the version
  // fetches its files there, so a path of its own machine, or any address on the web, is not accepted.
  std::set<std::string> source_schemes = {"s3", "gs", "abfss", "wasbs", "hdfs"};
  int threads = 16;             // number of threads that may wait for the store; a quarter of them for scans
  double request_seconds = 60;  // a request that is not answered so long after its arrival is refused
  int64_t request_bytes = int64_t{256} << 20;  // memory that the data of one request may take
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
