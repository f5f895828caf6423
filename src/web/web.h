// What the server says: its own API, MLflow's, Prometheus' text. Routes are one visible array (routes.cpp).
//
// For cli/ (`sinew server`), which owns the store and the HTTP server. Everything that comes from outside is judged
// here: who asks (tokens with roles), how often, how much, and every text in it. What is acknowledged is in the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/http.h"
#include "store/store.h"

namespace sinew::registry {
class Artifacts;
}

namespace sinew::web {

// What a caller may do; each role may do what those before it may.
enum class Role { kNobody, kRead, kSubmit, kAdmin };
const char* to_string(Role role);
std::optional<Role> role_of(const std::string& word);

// ---- tokens --------------------------------------------------------------------------------------------------------

struct Token {
  std::string name;
  Role role = Role::kRead;
  std::string salt, hash;  // hash: SHA-256 of salt and secret, all in hex
  int64_t made_ms = 0;
};
// A file of tokens, readable by its owner alone; what it holds does not let anybody in. Missing: no tokens. Throws
// Error when it can not be understood.
std::vector<Token> read_tokens(const std::string& path);
// Adds one, or takes the place of that of the same name, and returns the secret, which is kept nowhere. Of several
// processes that add and remove each waits for the other.
std::string add_token(const std::string& path, const std::string& name, Role role, Clock& clock = system_clock());
bool remove_token(const std::string& path, const std::string& name);  // false: there was none
// The one whose secret this is. All are looked at, each for the same time wherever the texts differ.
const Token* find_token(const std::vector<Token>& tokens, const std::string& secret);

// ---- the site ------------------------------------------------------------------------------------------------------

// What a person wants of a run that trains. An Error of it reaches the caller as its answer.
struct Wish {
  std::string kind;  // "stop", "pause", "checkpoint", "evaluate", "learning_rate", "batch_size", "scale"
  double value = 0;  // a factor, samples, workers
  std::string reason;
};
using Steer = std::function<void(const std::string& run_directory, const Wish& wish)>;

struct Options {
  store::Store* store = nullptr;             // outlives the site
  registry::Artifacts* artifacts = nullptr;  // likewise
  std::string runs_root = "runs";            // below it are the directories of runs that were indexed
  std::string version;                       // of the program
  std::string tokens;                        // the file; empty: everybody may do everything
  Steer steer = {};
  std::optional<store::Held> lease = {};  // every write is refused once another server holds it
  double requests_per_second = 1000;      // of one caller; 0: any number
  size_t max_upload_bytes = 1ull << 40;   // of one artifact
  int threads = 16;                       // that wait for the store
  Clock* clock = &system_clock();
};

class Site {
 public:
  explicit Site(Options options);
  ~Site();
  // For http::Server; the site must outlive it.
  http::Handler handler();
  http::Gate gate();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The OpenAPI 3.1 description of all routes, as docs/reference/openapi.json has it.
std::string openapi_text();

}  // namespace sinew::web
