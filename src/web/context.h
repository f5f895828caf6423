// Inside web/: defines what every route works with, and the exceptions that refuse a request. Any thread may use them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "registry/registry.h"
#include "web/auth.h"
#include "web/health.h"
#include "web/upload_quota.h"
#include "web/watcher.h"
#include "web/web.h"

namespace sinew::web {

using Json = nlohmann::ordered_json;

// A kind of refusal: the HTTP status, Sinew's stable code, and the code that MLflow's client knows.
struct RefusalKind {
  int status;
  ErrorCode code;
  const char* mlflow_code;
};
inline constexpr RefusalKind kInvalidValue{400, "API_INVALID_VALUE", "INVALID_PARAMETER_VALUE"};
inline constexpr RefusalKind kNotFound{404, "API_NOT_FOUND", "RESOURCE_DOES_NOT_EXIST"};
inline constexpr RefusalKind kAlreadyExists{400, "API_ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS"};
inline constexpr RefusalKind kConflict{409, "API_CONFLICT", "INVALID_PARAMETER_VALUE"};
inline constexpr RefusalKind kResourceConflict{409, "API_CONFLICT", "RESOURCE_CONFLICT"};
inline constexpr RefusalKind kLeaseLost{409, "API_LEASE_LOST", "RESOURCE_CONFLICT"};
inline constexpr RefusalKind kUnreachableRun{409, "API_UNREACHABLE_RUN", "INVALID_STATE"};
inline constexpr RefusalKind kNoToken{401, "API_NO_TOKEN", "UNAUTHENTICATED"};
inline constexpr RefusalKind kForbidden{403, "API_FORBIDDEN", "PERMISSION_DENIED"};
inline constexpr RefusalKind kSourceRefused{400, "API_SOURCE_REFUSED", "INVALID_PARAMETER_VALUE"};
inline constexpr RefusalKind kNoFiles{409, "API_VERSION_WITHOUT_FILES", "INVALID_STATE"};
inline constexpr RefusalKind kNotOwner{403, "API_NOT_OWNER", "PERMISSION_DENIED"};
inline constexpr RefusalKind kOutOfScope{403, "API_OUT_OF_SCOPE", "PERMISSION_DENIED"};
inline constexpr RefusalKind kUploadTooLarge{413, "API_UPLOAD_TOO_LARGE", "INVALID_PARAMETER_VALUE"};
inline constexpr RefusalKind kUploadQuota{413, "API_UPLOAD_QUOTA", "REQUEST_LIMIT_EXCEEDED"};
inline constexpr RefusalKind kNoRoute{404, "API_NO_ROUTE", "ENDPOINT_NOT_FOUND"};
inline constexpr RefusalKind kWrongMethod{405, "API_WRONG_METHOD", "ENDPOINT_NOT_FOUND"};
inline constexpr RefusalKind kRateLimited{429, "API_RATE_LIMITED", "REQUEST_LIMIT_EXCEEDED"};
inline constexpr RefusalKind kNotOffered{501, "API_NOT_OFFERED", "NOT_IMPLEMENTED"};
inline constexpr RefusalKind kCallerBusy{429, "API_CALLER_BUSY", "REQUEST_LIMIT_EXCEEDED"};
inline constexpr RefusalKind kOverloaded{503, "API_OVERLOADED", "TEMPORARILY_UNAVAILABLE"};
inline constexpr RefusalKind kOutcomeUnknown{503, "STORE_OUTCOME_UNKNOWN", "TEMPORARILY_UNAVAILABLE"};
inline constexpr RefusalKind kStoreAway{503, "API_STORE_AWAY", "TEMPORARILY_UNAVAILABLE"};
inline constexpr RefusalKind kBusyRecord{503, "API_BUSY_RECORD", "TEMPORARILY_UNAVAILABLE"};
inline constexpr RefusalKind kInternalError{500, "API_INTERNAL_ERROR", "INTERNAL_ERROR"};

// Refuses a request. The body of the response is {"error", "code", "hint"}; under /mlflow it also has "error_code" and
// "message".
struct Refused : std::runtime_error {
  Refused(const RefusalKind& kind_, const std::string& what, std::string hint_ = "")
      : std::runtime_error(what), kind(kind_), hint(std::move(hint_)) {}
  RefusalKind kind;
  std::string hint;
};
[[noreturn]] void refuse_invalid(const std::string& what, const std::string& hint = "");
[[noreturn]] void refuse_missing(const std::string& what, const std::string& hint = "");
[[noreturn]] void refuse(const store::Refusal& refusal);
// Returns the body of the response that refuses the request.
Json refusal_json(const Refused& refused, const std::string& path);

struct Counters {
  std::atomic<uint64_t> requests = 0, refused = 0, failed = 0, limited = 0;
};

// What all requests share.
struct Shared {
  explicit Shared(Options options_given)
      : options(std::move(options_given)),
        run_files(*options.clock),
        auth(options),
        watcher(*options.store, *options.clock),
        upload_quota(*options.store),
        health(*options.store) {}

  const Options options;
  registry::RunFileChecks run_files;
  Auth auth;
  Watcher watcher;
  UploadQuota upload_quota;
  Counters counters;
  Health health;  // declared last, so that it is destroyed first: its threads use all fields above
};

// What one request works with. It refers to the Shared object and may be copied.
struct Context {
  explicit Context(Shared& shared, Caller caller_given = {})
      : options(shared.options),
        store(*shared.options.store),
        artifacts(*shared.options.artifacts),
        run_files(shared.run_files),
        auth(shared.auth),
        watcher(shared.watcher),
        upload_quota(shared.upload_quota),
        health(shared.health),
        counters(shared.counters),
        caller(std::move(caller_given)) {}
  // Writes on behalf of the caller. Returns when the write is durable. Throws Refused if the store refuses the write.
  store::Receipt write(store::Batch batch);
  store::Receipt write(store::Change change) { return write(store::Batch{{std::move(change)}}); }
  // Returns the record. Throws Refused (kNotFound) when there is none.
  store::Record require(store::Kind kind, const std::string& id, int64_t number = 0);
  int64_t now_ms() const { return static_cast<int64_t>(options.clock->wall_seconds() * 1000); }

  const Options& options;
  store::Store& store;
  registry::Artifacts& artifacts;
  registry::RunFileChecks& run_files;
  Auth& auth;
  Watcher& watcher;
  UploadQuota& upload_quota;
  Health& health;
  Counters& counters;
  const Caller caller;
};

struct Call {
  const http::Request& request;
  std::map<std::string, std::string> path;  // values of the pattern's parameters
  std::shared_ptr<const Json> body = {};    // the request's body, if check_fields or check_permission has parsed it
};
using Handle = http::Response (*)(Context& context, const Call& call);

struct Route {
  const char* method;
  const char* path;  // "{name}" matches one segment, "{name*}" the rest of the path
  Role role;
  Handle handle;
  const char* help;
  // The parameters of the query, such as "after:integer wait:number". Sinew's own API refuses every other parameter.
  const char* query = "";
  // the fields of the JSON body, declared like `query`; kFile: the body is a file of any length
  const char* body = "";
};
inline constexpr const char* kFile = "file";
const std::vector<Route>& routes();
// Returns whether the route's work grows with the number of records, points or files that the client asks for. Such
// work has its own threads, so that it does not hold up other requests.
bool is_scan(const Route& route);
// Returns whether the request is a scan of a bounded number of records: a page of a list that skips none. Pages do not
// wait behind other scans.
bool is_small_page(const Route& route, const http::Request& request);

http::Response json_response(const Json& json, int status = 200);

}  // namespace sinew::web
