// Dispatches a request: authenticates the caller, limits its rate, finds the route, checks the role, and turns every
// failure into a response.
#include <charconv>
#include <cmath>

#include "base/size_text.h"
#include "web/access_log.h"
#include "web/artifacts.h"
#include "web/error_status.h"
#include "web/fields.h"
#include "web/permissions.h"
#include "web/pool.h"
#include "web/router.h"

namespace sinew::web {
namespace {

constexpr size_t kMaxWaiting = 10'000;
constexpr size_t kMaxUnauthenticatedBody = 64 << 10;

http::Response answer_of(const Refused& refused, const http::Request& request) {
  http::Response response = json_response(refusal_json(refused, request.path), refused.kind.status);
  if (refused.kind.status == 401)
    response.headers["www-authenticate"] = "Bearer realm=\"sinew\", Basic realm=\"sinew\"";
  return response;
}

// Returns the length that the header announces for the body, 0 without a body, and nullopt if it announces none.
std::optional<size_t> announced_bytes(const http::Request& header) {
  if (header.headers.contains("transfer-encoding")) return std::nullopt;
  const auto length = header.headers.find("content-length");
  if (length == header.headers.end()) return 0;
  const std::string& text = length->second;
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return bytes;
}

bool is_small(const http::Request& header) {
  const auto bytes = announced_bytes(header);
  return bytes && *bytes <= kMaxUnauthenticatedBody;
}

// Refuses a file that is announced as longer than the caller's token allows. The sink (upload.h) counts the bytes of a
// body without an announced length.
void check_upload_length(const http::Request& header, const Caller& caller) {
  const int64_t limit = caller.token ? caller.token->rights.upload_bytes : 0;
  const auto bytes = announced_bytes(header);
  if (limit == 0 || !bytes || *bytes <= static_cast<size_t>(limit)) return;
  throw Refused(kUploadTooLarge, "the token '" + caller.name + "' uploads files of at most " + size_text(limit),
                "use another token, or ask an administrator");
}

// Refuses callers without the route's role. handle() checks the role before it checks that the route exists, so that a
// caller without a token does not learn which paths exist.
void check_role(const Route* route, const Caller& caller) {
  const Role needed = route == nullptr ? Role::kRead : route->role;
  if (caller.role >= needed) return;
  if (caller.role == Role::kNone) {
    throw Refused(kNoToken, "the request has no valid token",
                  "send 'Authorization: Bearer TOKEN'; `sinew server token add` makes a token");
  }
  throw Refused(kForbidden,
                std::string("this request requires the role ") + to_string(needed) + "; the token '" + caller.name +
                    "' has the role " + to_string(caller.role),
                "use another token, or ask an administrator for one");
}

[[noreturn]] void refuse_route(const http::Request& request, const RouteMatch& match) {
  if (match.other_methods.empty()) {
    throw Refused(kNoRoute, "there is no route " + request.path, "GET /api/v1/openapi.json lists all routes");
  }
  throw Refused(kWrongMethod, request.path + " accepts " + match.other_methods + ", not " + request.method,
                "use another method");
}

// Sets headers so that a browser neither guesses the type of a response nor executes any of it, and nothing caches it.
void harden(http::Response& response) {
  response.headers.try_emplace("x-content-type-options", "nosniff");
  response.headers.try_emplace("content-security-policy", "default-src 'none'; sandbox");
  response.headers.try_emplace("cache-control", "no-store");
}

}  // namespace

struct Api::State {
  explicit State(Options options)
      : shared(std::move(options)), router(routes()), pool(shared.options.threads, kMaxWaiting) {
    create_default_experiment();
  }

  // MLflow's client logs into the experiment "0" unless its user names another one.
  void create_default_experiment() {
    const store::Subject subject{store::Kind::kExperiment, "0"};
    Context context(shared);
    if (context.store.find(subject)) return;
    try {
      context.write(store::Create{subject, "", "Default"});
    } catch (const Refused&) {
      // Another experiment has that name, or another server has created "0" meanwhile.
    }
  }

  // Calls `work` and turns every exception into a response.
  template <typename Work>
  http::Response respond(const http::Request& request, const Work& work) {
    try {
      return work();
    } catch (const Refused& refused) {
      ++shared.counters.refused;
      return answer_of(refused, request);
    } catch (const Error& error) {
      const RefusalKind kind = kind_of(error);
      ++(kind.status >= 500 ? shared.counters.failed : shared.counters.refused);
      return answer_of({kind, error.what(), error.hint}, request);
    } catch (const nlohmann::json::exception& error) {
      ++shared.counters.refused;
      return answer_of({kInvalidValue, std::string("the body is malformed: ") + error.what()}, request);
    } catch (const std::exception& error) {
      ++shared.counters.failed;
      return answer_of({kInternalError, error.what()}, request);
    }
  }

  void handle(const http::Request& request, const http::Answer& answer) {
    ++shared.counters.requests;
    const auto access = std::make_shared<AccessEntry>(shared.options, request);
    const auto finish = [answer, access](http::Response response) {
      harden(response);
      access->finish(response.status);
      answer(std::move(response));
    };
    Caller caller;
    RouteMatch match;
    const http::Response refusal = respond(request, [&] {
      caller = shared.auth.caller(request);
      access->set_token(caller.name);
      const double wait =
          request.sink ? 0 : shared.auth.wait_seconds(request, caller);  // admit() has counted uploads already
      if (wait > 0) return rate_limited(request, wait);
      match = router.find(request.method, request.path);
      check_role(match.route, caller);
      if (match.route == nullptr) refuse_route(request, match);
      return http::Response{};
    });
    if (match.route == nullptr || refusal.status != 200) return finish(refusal);
    const auto kept = std::make_shared<const http::Request>(request);
    const bool accepted = pool.post([this, kept, finish, caller, match] {
      finish(respond(*kept, [&] {
        Context context(shared, caller);
        Call call{*kept, match.path};
        check_fields(*match.route, call);
        check_permission(context, *match.route, call);
        return match.route->handle(context, call);
      }));
    });
    if (accepted) return;
    finish(respond(request, []() -> http::Response {
      throw Refused(kOverloaded, "too many requests wait for the store", "try again in a moment");
    }));
  }

  http::Response rate_limited(const http::Request& request, double wait) {
    ++shared.counters.limited;
    const auto seconds = static_cast<int64_t>(std::ceil(wait));
    http::Response response = answer_of(
        {kRateLimited, "the caller exceeds the limit of requests per second", "wait " + std::to_string(seconds) + " s"},
        request);
    response.headers["retry-after"] = std::to_string(seconds);
    return response;
  }

  // Decides about a request before any of its body arrives. Only a caller with the route's role and within its rate
  // limit may send a file, and only a caller with a token may send a large body. handle() checks requests with small
  // bodies.
  http::Decision admit(const http::Request& header) {
    static const std::set<std::string> kRepeatable{"run",      "run_id", "run_ids", "experiment_ids",
                                                   "order_by", "stages", "key"};
    http::Decision decision;
    decision.repeatable = &kRepeatable;
    const RouteMatch match = router.find(header.method, header.path);
    const bool is_file = match.route != nullptr && std::string_view(match.route->body) == kFile;
    if (!is_file && is_small(header)) return decision;
    AccessEntry access(shared.options, header);
    http::Response refusal = respond(header, [&] {
      const Caller caller = shared.auth.caller(header);
      access.set_token(caller.name);
      const bool has_token = caller.role != Role::kNone;
      const double wait = is_file || !has_token ? shared.auth.wait_seconds(header, caller) : 0;
      if (wait > 0) return rate_limited(header, wait);
      check_role(match.route, caller);
      if (!has_token) decision.max_body_bytes = kMaxUnauthenticatedBody;
      if (!is_file) return http::Response{};
      check_upload_length(header, caller);
      decision.max_body_bytes = shared.options.max_upload_bytes;
      Context context(shared, caller);
      decision.sink = upload_sink(context, {header, match.path});
      return http::Response{};
    });
    if (refusal.status != 200) {
      ++shared.counters.requests;
      harden(refusal);
      access.finish(refusal.status);
      decision.refusal = std::move(refusal);
    }
    return decision;
  }

  Shared shared;
  const Router router;
  Pool pool;  // the last member, because its threads use the others
};

Api::Api(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Api::~Api() = default;

http::Handler Api::handler() {
  return [state = state_.get()](const http::Request& request, const http::Answer& answer) {
    state->handle(request, answer);
  };
}

http::Admission Api::admission() {
  return [state = state_.get()](const http::Request& header) { return state->admit(header); };
}

}  // namespace sinew::web
