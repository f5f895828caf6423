// The HTTP API of `sinew server`: Sinew's own API, MLflow's REST API and Prometheus' text format. routes.cpp lists
// every route.
//
// server/ uses this room, and owns the store and the HTTP server. This room checks everything that comes from a client:
// its token and role, its rate, the size of its requests, and every text in them. When the API reports that a change
// succeeded, the change is durable in the store.
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

// The rights of a caller. Each role includes the rights of all roles before it.
enum class Role { kNone, kRead, kSubmit, kAdmin };
const char* to_string(Role role);
std::optional<Role> role_of(const std::string& word);

// ---- tokens --------------------------------------------------------------------------------------------------------

// The name of every caller of a server without tokens. No token may have this name, or it would own what these callers
// created.
inline constexpr const char* kLocalCaller = "local";
// What a token allows, and how much.
struct TokenRights {
  Role role = Role::kRead;
  // Patterns of what the token may change: names or ids of experiments, and names of models. "*" matches any text.
  // Every token may read everything.
  std::vector<std::string> experiments = {"*"}, models = {"*"};
  int64_t expires_ms = 0;            // milliseconds since 1970; 0: never
  double requests_per_second = 0;    // 0: the server's limit
  int64_t upload_bytes = 0;          // the most bytes of one file; 0: the server's limit
  int64_t upload_bytes_per_day = 0;  // the most bytes of all files of a day; 0: no limit
};
struct Token {
  std::string name;
  TokenRights rights;
  std::string salt, hash;  // hash: SHA-256 of salt and secret; both are hex
  int64_t made_ms = 0;
  // After a rotation, the previous secret works until before_until_ms.
  std::string salt_before, hash_before;
  int64_t before_until_ms = 0;
};
inline std::string default_tokens(const std::string& root) {
  return root + "/.sinew/tokens.json";
}
// Reads a file of tokens. The file holds hashes instead of secrets, and only its owner can read it. Returns no tokens
// if the file is missing. Throws Error if it is malformed (SERVER_BAD_TOKEN_FILE), or if another user may have written
// it (FILE_UNTRUSTED).
std::vector<Token> read_tokens(const std::string& path);
// Adds a token and returns the secret. If `secret_file` is given, first writes the secret to that file, which only its
// owner can read; otherwise stores it nowhere. Processes that change the token file at the same time wait for one
// another. Throws Error if the name or the scope is not valid (SERVER_BAD_TOKEN_NAME, SERVER_BAD_TOKEN_SCOPE), if there
// is a token of this name (SERVER_TOKEN_EXISTS), or if the token file cannot be locked (SERVER_TOKEN_FILE_LOCKED).
std::string add_token(const std::string& path, const std::string& name, const TokenRights& rights,
                      const std::string& secret_file = "", Clock& clock = system_clock());
inline std::string add_token(const std::string& path, const std::string& name, Role role) {
  TokenRights rights;
  rights.role = role;
  return add_token(path, name, rights);
}
// Returns whether the name of a record's owner stands for an administrator: for one with this token, or for a local
// caller of a server without tokens.
bool is_admin(const std::string& tokens, const std::string& owner);
// Gives the token a new secret and returns it. The previous secret works for `overlap_seconds` more. `expires_ms`, if
// given, replaces the time at which the token expires (0: never). Throws Error (SERVER_NO_TOKEN) if there is no token
// of this name.
std::string rotate_token(const std::string& path, const std::string& name, double overlap_seconds,
                         std::optional<int64_t> expires_ms = {}, const std::string& secret_file = "",
                         Clock& clock = system_clock());
bool remove_token(const std::string& path, const std::string& name);  // returns false if there is no such token
// Returns the token with this secret. Returns null if there is none or the token has expired. Compares the secret with
// every token in constant time.
const Token* find_token(const std::vector<Token>& tokens, const std::string& secret, int64_t now_ms);
// Splits a list of patterns at its commas.
std::vector<std::string> scope_of(const std::string& list);
// Returns whether one of the patterns matches the text.
bool fits_scope(const std::vector<std::string>& patterns, const std::string& text);
// Describes for users, in one line, what the token allows and how long.
std::string to_string(const Token& token);

// ---- the API -------------------------------------------------------------------------------------------------------

// A request of a caller to a running training.
struct ControlRequest {
  std::string action;  // a name in cluster::request_kinds()
  double value = 0;    // valid for the action
  std::string reason;
};
// Passes a request to the run. If it throws an Error, the API answers the caller with that Error.
using Control = std::function<void(const std::string& run_directory, const ControlRequest& request)>;

struct Options {
  store::Store* store = nullptr;             // must outlive the Api
  registry::Artifacts* artifacts = nullptr;  // must outlive the Api
  std::string runs_root;                     // the directory that contains the directories of indexed runs
  std::string version;                       // the version of the program
  // path of the token file; empty: the server has no tokens, and every local caller is an admin
  std::string tokens;
  Control control = {};
  // access_log gets one line of JSON for each finished request. log gets each warning (failed logins) as a sentence.
  // Both may be empty; any thread calls them. No line contains a secret, a query or a body.
  std::function<void(const std::string&line)> access_log = {}, log = {};
  std::optional<store::HeldLease> lease = {};  // the API writes only while this lease is held
  double requests_per_second = 1000;           // limit for each caller; 0: no limit
  size_t max_upload_bytes = 1ull << 40;        // the most bytes of one uploaded file
  // Schemes of the places outside this server from which a version may come. Whoever loads the version fetches its
  // files there. So a path of that person's own machine, or any address on the web, is not accepted.
  std::set<std::string> source_schemes = {"s3", "gs", "abfss", "wasbs", "hdfs"};
  // Number of threads that may wait for the store; a quarter of them (1 to 6) for scans. One more is for small pages.
  int threads = 16;
  double request_seconds = 60;                 // a request that has no answer this long after its arrival is refused
  int64_t request_bytes = int64_t{256} << 20;  // the most memory that the data of one request may take
  // The most memory of answers that clients have not read yet, beyond small ones. One caller may take a quarter of it,
  // or one answer.
  int64_t answer_bytes = int64_t{256} << 20;
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

// Returns the OpenAPI 3.1 description of all routes: the content of docs/reference/openapi.json.
std::string openapi_text();

}  // namespace sinew::web
