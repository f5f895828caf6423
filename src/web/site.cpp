// From a request to its answer: who asks, may they, how often, which route; and every failure as an answer.
#include <charconv>
#include <cmath>

#include "web/artifacts.h"
#include "web/fields.h"
#include "web/pool.h"
#include "web/router.h"

namespace sinew::web {
namespace {

constexpr size_t kMostWaiting = 10'000;
constexpr size_t kMostOfStranger = 64 << 10;  // of a body, from who is not known

bool is_mlflow(const std::string& path) {
  return path.find("/mlflow") != std::string::npos;
}

http::Response answer_of(const Refused& refused, const http::Request& request) {
  Json body = Json::object();
  if (is_mlflow(request.path)) body = {{"error_code", refused.code}, {"message", refused.what()}};
  body["error"] = refused.what();
  body["hint"] = refused.hint;
  http::Response response = json_response(body, refused.status);
  if (refused.status == 401) response.headers["www-authenticate"] = "Bearer realm=\"sinew\", Basic realm=\"sinew\"";
  return response;
}

// The header says itself that nothing large follows.
bool is_small(const http::Request& header) {
  if (header.headers.contains("transfer-encoding")) return false;
  const auto length = header.headers.find("content-length");
  if (length == header.headers.end()) return true;
  const std::string& text = length->second;
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() && bytes <= kMostOfStranger;
}

// The role is asked for before it is said whether there is such a thing.
void judge_role(const Route* route, const Visitor& visitor) {
  const Role needed = route == nullptr ? Role::kRead : route->role;
  if (visitor.role >= needed) return;
  if (visitor.role == Role::kNobody) {
    throw Refused(401, "UNAUTHENTICATED", "this needs a token",
                  "send 'Authorization: Bearer TOKEN'; sinew server token add makes one");
  }
  throw Refused(403, "PERMISSION_DENIED",
                std::string("this needs the role ") + to_string(needed) + ", and the token '" + visitor.who + "' has " +
                    to_string(visitor.role),
                "use another token, or have one made");
}

[[noreturn]] void refuse_route(const http::Request& request, const Place& place) {
  if (place.other_methods.empty()) {
    throw Refused(404, "ENDPOINT_NOT_FOUND", "there is nothing at " + request.path,
                  "GET /api/v1/openapi.json lists what there is");
  }
  throw Refused(405, "ENDPOINT_NOT_FOUND", request.path + " takes " + place.other_methods + ", not " + request.method);
}

// Every answer can be read by a program that sniffs, and none of them is a page of this site.
void harden(http::Response& response) {
  response.headers.try_emplace("x-content-type-options", "nosniff");
  response.headers.try_emplace("content-security-policy", "default-src 'none'; sandbox");
  response.headers.try_emplace("cache-control", "no-store");
}

}  // namespace

struct Site::State {
  explicit State(Options options)
      : context(std::move(options)), router(routes()), pool(context.options.threads, kMostWaiting) {
    make_default_experiment();
  }

  // MLflow's client logs into "0" unless it is told another one.
  void make_default_experiment() {
    const store::Subject subject{store::Kind::kExperiment, "0"};
    if (context.store.find(subject)) return;
    try {
      context.write(store::Create{subject, "", "Default"});
    } catch (const Refused&) {
      // There is one of that name, or another server made it first.
    }
  }

  // Whatever happens becomes an answer.
  template <typename Work>
  http::Response guarded(const http::Request& request, const Work& work) {
    try {
      return work();
    } catch (const Refused& refused) {
      ++context.counters.refused;
      return answer_of(refused, request);
    } catch (const Error& error) {
      ++context.counters.failed;
      return answer_of({503, "TEMPORARILY_UNAVAILABLE", error.what(), error.hint}, request);
    } catch (const nlohmann::json::exception& error) {
      ++context.counters.refused;
      return answer_of(
          {400, "INVALID_PARAMETER_VALUE", std::string("the body is not as it should be: ") + error.what()}, request);
    } catch (const std::exception& error) {
      ++context.counters.failed;
      return answer_of({500, "INTERNAL_ERROR", error.what()}, request);
    }
  }

  void handle(const http::Request& request, const http::Answer& answer) {
    ++context.counters.requests;
    const auto finish = [answer](http::Response response) {
      harden(response);
      answer(std::move(response));
    };
    Visitor visitor;
    Place place;
    const http::Response refusal = guarded(request, [&] {
      visitor = context.auth.visitor(request);
      const double wait =
          request.sink ? 0 : context.auth.wait_seconds(request, visitor);  // a file was counted by admit()
      if (wait > 0) return too_often(request, wait);
      place = router.find(request.method, request.path);
      judge_role(place.route, visitor);
      if (place.route == nullptr) refuse_route(request, place);
      return http::Response{};
    });
    if (place.route == nullptr || refusal.status != 200) return finish(refusal);
    const auto shared = std::make_shared<const http::Request>(request);
    const bool taken = pool.post([this, shared, finish, visitor, place] {
      finish(guarded(*shared, [&] {
        Call call{*shared, place.path, visitor.role, visitor.who};
        judge_fields(*place.route, call);
        return place.route->handle(context, call);
      }));
    });
    if (taken) return;
    finish(guarded(request, []() -> http::Response {
      throw Refused(503, "TEMPORARILY_UNAVAILABLE", "too many requests wait for the store", "try again in a moment");
    }));
  }

  http::Response too_often(const http::Request& request, double wait) {
    ++context.counters.limited;
    const auto seconds = static_cast<int64_t>(std::ceil(wait));
    http::Response response =
        answer_of({429, "REQUEST_LIMIT_EXCEEDED", "more requests than this server takes from one caller",
                   "wait " + std::to_string(seconds) + " s"},
                  request);
    response.headers["retry-after"] = std::to_string(seconds);
    return response;
  }

  // Before anything of a body is there. A file of any length is let in only from somebody who may send one and does not
  // ask too often, a large body only from somebody who is known. A small one is judged when it is whole, by handle().
  http::Intake admit(const http::Request& header) {
    static const std::set<std::string> kRepeatable{"run",      "run_id", "run_ids", "experiment_ids",
                                                   "order_by", "stages", "key"};
    http::Intake intake;
    intake.repeatable = &kRepeatable;
    const Place place = router.find(header.method, header.path);
    const bool is_file = place.route != nullptr && std::string_view(place.route->body) == kFile;
    if (!is_file && is_small(header)) return intake;
    http::Response refusal = guarded(header, [&] {
      const Visitor visitor = context.auth.visitor(header);
      const bool is_known = visitor.role != Role::kNobody;
      const double wait = is_file || !is_known ? context.auth.wait_seconds(header, visitor) : 0;
      if (wait > 0) return too_often(header, wait);
      judge_role(place.route, visitor);
      if (!is_known) intake.max_body_bytes = kMostOfStranger;
      if (!is_file) return http::Response{};
      intake.max_body_bytes = context.options.max_upload_bytes;
      intake.sink = upload_sink(context, {header, place.path, visitor.role, visitor.who});
      return http::Response{};
    });
    if (refusal.status != 200) {
      ++context.counters.requests;
      harden(refusal);
      intake.refusal = std::move(refusal);
    }
    return intake;
  }

  Context context;
  const Router router;
  Pool pool;  // last: its threads use all of the above
};

Site::Site(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Site::~Site() = default;

http::Handler Site::handler() {
  return [state = state_.get()](const http::Request& request, const http::Answer& answer) {
    state->handle(request, answer);
  };
}

http::Gate Site::gate() {
  return [state = state_.get()](const http::Request& header) { return state->admit(header); };
}

}  // namespace sinew::web
