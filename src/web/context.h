// What every route works with: the store, where contents are, and the ways to say no. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "web/auth.h"
#include "web/watcher.h"
#include "web/web.h"

namespace sinew::web {

using Json = nlohmann::ordered_json;

// The answer is no. Becomes {"error", "hint"}, and for MLflow's client {"error_code", "message"} as well.
struct Refused : std::runtime_error {
  Refused(int status_, const char* code_, const std::string& what, std::string hint_ = "")
      : std::runtime_error(what), status(status_), code(code_), hint(std::move(hint_)) {}
  int status;
  const char* code;  // as MLflow's client knows them
  std::string hint;
};
[[noreturn]] void refuse_invalid(const std::string& what, const std::string& hint = "");
[[noreturn]] void refuse_missing(const std::string& what, const std::string& hint = "");
[[noreturn]] void refuse(const store::Refusal& refusal);

struct Counters {
  std::atomic<uint64_t> requests = 0, refused = 0, failed = 0, limited = 0;
};

struct Context {
  explicit Context(Options options_given)
      : options(std::move(options_given)),
        store(*options.store),
        artifacts(*options.artifacts),
        auth(options),
        watcher(store, *options.clock) {}
  // Durable when it returns; throws Refused.
  store::Receipt write(store::Batch batch);
  store::Receipt write(store::Change change) { return write(store::Batch{{std::move(change)}}); }
  // Throws Refused when there is none.
  store::Record need(store::Kind kind, const std::string& id, int64_t number = 0);
  int64_t now_ms() const { return static_cast<int64_t>(options.clock->wall_seconds() * 1000); }

  const Options options;
  store::Store& store;
  registry::Artifacts& artifacts;
  Auth auth;
  Watcher watcher;  // tells who waits, as far as they still may hear it
  Counters counters;
};

struct Call {
  const http::Request& request;
  std::map<std::string, std::string> path;  // what stood in the places of the pattern
  Role role = Role::kNobody;
  std::string who;
  std::shared_ptr<const Json> body = {};  // the request's, if it was parsed already (fields.h)
};
using Handle = http::Response (*)(Context& context, const Call& call);

struct Route {
  const char* method;
  const char* path;  // "{name}" is one segment, "{name*}" all the rest
  Role role;
  Handle handle;
  const char* help;
  const char* query = "";  // "after:integer wait:number"; of the own API, others are refused
  const char* body = "";   // likewise, of a JSON object; kFile: bytes as they are, of any length
};
inline constexpr const char* kFile = "file";
// Every route there is (routes.cpp).
const std::vector<Route>& routes();

http::Response json_response(const Json& json, int status = 200);
std::string dump(const Json& json);

}  // namespace sinew::web
