// Dispatches a request: authenticates the caller, limits its rate, finds the route, checks the role, and turns every
// failure into a response.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/cost_limit.h"
#include "base/size_text.h"
#include "web/access_log.h"
#include "web/answer_memory.h"
#include "web/artifacts.h"
#include "web/error_status.h"
#include "web/fields.h"
#include "web/permissions.h"
#include "web/pool.h"
#include "web/router.h"

namespace sinew::web {
namespace {

// A quarter of the threads, at least one and at most six, serves scans (is_scan). One more thread is kept for scans
// that are small pages. The other threads serve all other requests. A caller may use three quarters of the threads of
// either kind. The system prefers the threads that do not scan. The store has connections for more readers than scans
// can occupy.
Pool::Limits scan_limits(int threads) {
  const int count = std::clamp(threads / 4, 1, 6);
  return {count + 1, std::max(1, count * 3 / 4), 500, 5'000, 5, 1};
}
Pool::Limits other_limits(int threads) {
  const Pool::Limits scans = scan_limits(threads);
  const int count = std::max(1, threads - (scans.threads - scans.kept));
  return {count, std::max(1, count * 3 / 4), 2'000, 10'000, 0, 0};
}

constexpr size_t kMaxUnauthenticatedBody = 64 << 10;

http::Response answer_of(const Refused& refused, const http::Request& request) {
  http::Response response = json_response(refusal_json(refused, request.path), refused.kind.status);
  if (refused.kind.status == 401)
    response.headers["www-authenticate"] = "Bearer realm=\"sinew\", Basic realm=\"sinew\"";
  if (refused.kind.code == kOverloaded.code || refused.kind.code == kCallerBusy.code)
    response.headers["retry-after"] = "1";
  return response;
}

[[noreturn]] void refuse_for_answers() {
  throw Refused(kOverloaded, "too many answers wait until their clients have read them",
                "read the answers to your other requests, and try again in a moment");
}

// Returns the length of the body that the header announces: 0 if there is no body, nullopt if the length is unknown.
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

// Refuses a file whose announced length is more than the caller's token allows. If no length is announced, the sink
// (upload.h) counts the bytes as they arrive.
void check_upload_length(const http::Request& header, const Caller& caller) {
  const int64_t limit = caller.token ? caller.token->rights.upload_bytes : 0;
  const auto bytes = announced_bytes(header);
  if (limit == 0 || !bytes || *bytes <= static_cast<size_t>(limit)) return;
  throw Refused(kUploadTooLarge, "the token '" + caller.name + "' uploads files of at most " + size_text(limit),
                "use another token, or ask an administrator");
}

// Refuses a caller that does not have the route's role. handle() calls it before it checks that the route exists, so
// that a caller without a token does not learn which paths exist.
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

// Refuses a request because the store cannot be used. If `begun`, the request may already have changed something.
[[noreturn]] void refuse_without_store(const std::string& problem, bool begun = false) {
  if (begun) {
    throw Refused(kOutcomeUnknown,
                  "the store cannot be used now, and it is unknown whether the change was made: " + problem,
                  "read the current state when GET /health succeeds again, then decide whether to repeat the request");
  }
  throw Refused(kStoreAway, "the store cannot be used now: " + problem, "GET /health tells when it can be used again");
}

// Returns the name under which the server counts the sender's share of its threads and memory. Without tokens all local
// callers have the same name, so the address tells them apart.
std::string name_of(const Caller& caller, const http::Request& request) {
  return caller.role == Role::kNone || caller.name == kLocalCaller ? "address " + request.peer : "token " + caller.name;
}

// Tells Health, when it is destroyed, that the request needs no answer from Health any more.
class Ended {
 public:
  Ended(Health& health, uint64_t number) : health_(health), number_(number) {}
  ~Ended() { health_.done(number_); }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;

 private:
  Health& health_;
  const uint64_t number_;
};

// Sets headers so that a browser neither guesses the response's type nor executes its content, and nothing caches it.
void harden(http::Response& response) {
  response.headers.try_emplace("x-content-type-options", "nosniff");
  response.headers.try_emplace("content-security-policy", "default-src 'none'; sandbox");
  response.headers.try_emplace("cache-control", "no-store");
}

}  // namespace

struct Api::State {
  explicit State(Options options)
      : shared(std::move(options)),
        access_log(shared.options),
        router(routes()),
        answers(shared.options.answer_bytes),
        scans(scan_limits(shared.options.threads), *shared.options.clock),
        pool(other_limits(shared.options.threads), *shared.options.clock) {
    create_default_experiment();
  }

  // MLflow's client logs to the experiment "0" unless its user names another one.
  void create_default_experiment() {
    const store::Subject subject{store::Kind::kExperiment, "0"};
    Context context(shared);
    if (context.store.find(subject)) return;
    try {
      context.write(store::Create{subject, "", "Default"});
    } catch (const Refused&) {
      // Another experiment is named "Default", or another server has created "0" meanwhile.
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
    const auto access = std::make_shared<AccessEntry>(access_log, request);
    Caller caller;
    RouteMatch match;
    http::Response early = respond(request, [&] {
      caller = shared.auth.caller(request);
      access->set_token(caller.name);
      const double wait =
          request.sink ? 0 : shared.auth.wait_seconds(request, caller);  // admit() has counted uploads already
      if (wait > 0) return rate_limited(request, wait);
      match = router.find(request.method, request.path);
      check_role(match.route, caller);
      if (match.route == nullptr) refuse_route(request, match);
      if (match.route->role == Role::kNone) return call_route(request, match, caller);
      const store::Condition condition = shared.health.condition();
      if (!condition.usable) refuse_without_store(condition.problem);
      http::Response later;
      later.status = 0;
      return later;
    });
    const bool known = caller.role != Role::kNone;
    const auto finish = [answer, access, known](http::Response response) {
      harden(response);
      response.known_client = known;
      access->finish(response.status);
      answer(std::move(response));
    };
    if (early.status != 0) return finish(std::move(early));
    post(request, match, caller, finish);
  }

  http::Response call_route(const http::Request& request, const RouteMatch& match, const Caller& caller) {
    Context context(shared, caller);
    Call call{request, match.path};
    check_fields(*match.route, call);
    check_permission(context, *match.route, call);
    return match.route->handle(context, call);
  }

  // Calls a route whose answer may be large. Refuses the request if the answers that clients have not read yet leave no
  // room for this one. Never refuses a change, because it was carried out already.
  http::Response call_within_memory(const http::Request& request, const RouteMatch& match, const Caller& caller) {
    const std::string name = name_of(caller, request);
    if (is_scan(*match.route) && !answers.has_room(name)) refuse_for_answers();
    http::Response response = call_route(request, match, caller);
    const auto bytes = static_cast<int64_t>(response.body.size());
    if (response.source || bytes <= AnswerMemory::kSmall) return response;
    response.until_sent = answers.hold(name, bytes, match.route->role > Role::kRead);
    if (!response.until_sent) refuse_for_answers();
    return response;
  }

  // Lets a thread of a pool answer the request, within the limits of time and memory for one request.
  void post(const http::Request& request, const RouteMatch& match, const Caller& caller,
            const std::function<void(http::Response)>& finish) {
    const auto kept = std::make_shared<const http::Request>(request);
    const double until = shared.options.clock->monotonic_seconds() + shared.options.request_seconds;
    const bool changes = match.route->role > Role::kRead;
    const uint64_t number = shared.health.begin([this, kept, finish, changes](const std::string& problem) {
      finish(respond(*kept, [&]() -> http::Response { refuse_without_store(problem, changes); }));
    });
    const auto ended = std::make_shared<Ended>(shared.health, number);
    const auto work = [this, kept, finish, caller, match, until, changes, ended] {
      finish(respond(*kept, [&] {
        // A change is carried out even if its sender has left, because the sender may rely on it.
        CostLimit limit(*shared.options.clock, until, shared.options.request_bytes,
                        changes ? nullptr : kept->abandoned);
        const CostLimit::Scope scope(&limit);
        limit.check();  // the request may have waited too long already
        return call_within_memory(*kept, match, caller);
      }));
    };
    const auto weight = is_small_page(*match.route, request) ? Pool::Weight::kLight : Pool::Weight::kHeavy;
    const auto outcome = pool_of(*match.route).post(name_of(caller, request), work, weight);
    if (outcome == Pool::Outcome::kAccepted) return;
    finish(respond(request, [&]() -> http::Response {
      if (outcome == Pool::Outcome::kFull)
        throw Refused(kOverloaded, "too many requests wait for the store", "try again in a moment");
      throw Refused(kCallerBusy, "too many requests of this caller wait", "wait for the answers to some of them");
    }));
  }

  Pool& pool_of(const Route& route) { return is_scan(route) ? scans : pool; }

  http::Response rate_limited(const http::Request& request, double wait) {
    ++shared.counters.limited;
    const auto seconds = static_cast<int64_t>(std::ceil(wait));
    http::Response response = answer_of(
        {kRateLimited, "the caller exceeds the limit of requests per second", "wait " + std::to_string(seconds) + " s"},
        request);
    response.headers["retry-after"] = std::to_string(seconds);
    return response;
  }

  // Decides about a request before any of its body arrives. Only a caller who has the route's role and is within its
  // rate limit may send a file. Only a caller with a token may send a large body. handle() checks requests with small
  // bodies.
  http::Decision admit(const http::Request& header) {
    static const std::set<std::string> kRepeatable{"run",      "run_id", "run_ids", "experiment_ids",
                                                   "order_by", "stages", "key"};
    http::Decision decision;
    decision.repeatable = &kRepeatable;
    const RouteMatch match = router.find(header.method, header.path);
    const bool is_file = match.route != nullptr && std::string_view(match.route->body) == kFile;
    if (!is_file && is_small(header)) return decision;
    AccessEntry access(access_log, header);
    http::Response refusal = respond(header, [&] {
      const Caller caller = shared.auth.caller(header);
      access.set_token(caller.name);
      const bool has_token = caller.role != Role::kNone;
      const double wait = is_file || !has_token ? shared.auth.wait_seconds(header, caller) : 0;
      if (wait > 0) return rate_limited(header, wait);
      check_role(match.route, caller);
      const store::Condition condition = shared.health.condition();
      if (!condition.usable) refuse_without_store(condition.problem);
      if (!has_token) decision.max_body_bytes = kMaxUnauthenticatedBody;
      decision.sender = name_of(caller, header);
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
  AccessLog access_log;
  const Router router;
  AnswerMemory answers;
  Pool scans, pool;  // declared last, so that they are destroyed first: their threads use all fields above
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
