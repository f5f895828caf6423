#include "cluster/coordinator_client.h"

#include <expected>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/process.h"
#include "cluster/coordinator_connection.h"
#include "cluster/json.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

std::string control_body(const std::string& kind, double value, const std::string& reason) {
  return dump({{"kind", kind}, {"value", value}, {"reason", reason}});
}

std::string scale_body(int64_t wanted) {
  return dump({{"workers", wanted}});
}

// What is known about a call that failed.
enum class Effect {
  none,     // the coordinator has not acted on the call
  unknown,  // the coordinator may have acted on the call, but its answer did not arrive
  refused,  // the coordinator has answered, and would give the same answer again
};
struct FailedCall {
  Error error;
  Effect effect;
};

Effect effect_of(const Error& refusal) {
  // One that was superseded says no to every call; the other one may be found at the second try.
  const bool passes = refusal.code == kNotReady || refusal.code == kCallDamaged || refusal.code == kSuperseded;
  return passes ? Effect::none : Effect::refused;
}

std::expected<std::string, FailedCall> make_call(CoordinatorConnection& connection, const std::string& method,
                                                 const std::string& path, const std::string& body,
                                                 double timeout_seconds) {
  const auto response = connection.send(method, path, body, timeout_seconds);
  if (!response && response.error().damaged) {
    const Error& damaged = *response.error().damaged;
    return std::unexpected(FailedCall{damaged, damaged.code == kAnswerDamaged ? Effect::unknown : Effect::refused});
  }
  if (!response) {
    using Kind = http::Failure::Kind;
    const Kind kind = response.error().kind;
    const bool final = kind == Kind::bad_url || kind == Kind::tls;
    const Effect effect = kind == Kind::refused ? Effect::none : final ? Effect::refused : Effect::unknown;
    return std::unexpected(FailedCall{
        Error(kUnreachable, "the coordinator does not answer: " + response.error().what,
              "check that the run goes on; coordinator.json in its directory says where its coordinator listens"),
        effect});
  }
  if (response->status >= 200 && response->status < 300) return response->body;
  const Error refusal = error_in(*response);
  return std::unexpected(FailedCall{refusal, effect_of(refusal)});
}

// Treats a call for which this process has no free descriptor or thread as a call that got no answer.
std::expected<std::string, FailedCall> try_call(CoordinatorConnection& connection, const std::string& method,
                                                const std::string& path, const std::string& body,
                                                double timeout_seconds) {
  try {
    return make_call(connection, method, path, body, timeout_seconds);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const auto shortage = shortage_of(error);
    if (!shortage) throw;
    return std::unexpected(FailedCall{*shortage, Effect::none});
  }
}

enum class Repeat {
  if_without_effect,  // only if the first call had no effect, because a second call would have a second effect
  unless_refused,     // unless the coordinator refused the call, because two calls have the same effect as one
};

// Makes a call. If it failed in a way that a second call may cure, waits a second and calls once more: the successor of
// a dead coordinator answers within a fraction of a second. A refusal is final.
std::string call_run(const CoordinatorInfo& info, const std::string& run_directory, Repeat repeat,
                     const std::string& method, const std::string& path, const std::string& body) {
  constexpr double kTimeoutSeconds = 5;
  CoordinatorInfo newest = info;
  CoordinatorConnection connection([&] { return CoordinatorPlace{newest.url, newest.secret}; });
  auto answer = try_call(connection, method, path, body, kTimeoutSeconds);
  const auto may_repeat = [&](Effect effect) {
    return effect == Effect::none || (effect == Effect::unknown && repeat == Repeat::unless_refused);
  };
  if (!answer && may_repeat(answer.error().effect)) {
    system_clock().sleep_seconds(1);
    newest = read_coordinator_info(run_directory).value_or(info);
    if (http::host_of(newest.url) != http::host_of(info.url)) newest = info;  // the caller has checked only this host
    answer = try_call(connection, method, path, body, kTimeoutSeconds);
  }
  if (answer) return *answer;
  const auto& [error, effect] = answer.error();
  if (effect == Effect::unknown && repeat == Repeat::if_without_effect) {
    throw Error(error.code, run_directory + ": " + error.what() + "; the request may have arrived all the same",
                "look with `sinew ps` whether the run has got the request, and repeat it only if not");
  }
  throw Error(error.code, run_directory + ": " + error.what(),
              error.hint.empty() ? "see whether the run goes on with: sinew runs show " + run_directory : error.hint);
}

}  // namespace

CoordinatorClient::CoordinatorClient(std::string url, std::string secret, double timeout_seconds)
    : url_(std::move(url)), secret_(std::move(secret)), timeout_seconds_(timeout_seconds) {}

std::optional<CoordinatorStatus> CoordinatorClient::status() const {
  try {
    return status_of_json(call(url_, secret_, "GET", "/v2/status", "", timeout_seconds_));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool CoordinatorClient::post(const std::string& path, const std::string& body) const {
  try {
    call(url_, secret_, "POST", path, body, timeout_seconds_);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool CoordinatorClient::lost(int64_t pid, const std::string& why) const {
  return post("/v2/lost", dump({{"pid", pid}, {"host", host_name()}, {"why", why}}));
}

bool CoordinatorClient::control(const std::string& kind, double value, const std::string& reason) const {
  return post("/v2/control", control_body(kind, value, reason));
}

bool CoordinatorClient::scale(int64_t wanted) const {
  return post("/v2/scale", scale_body(wanted));
}

std::string call(const std::string& url, const std::string& secret, const std::string& method, const std::string& path,
                 const std::string& body, double timeout_seconds) {
  CoordinatorConnection connection([&] { return CoordinatorPlace{url, secret}; });
  auto answer = try_call(connection, method, path, body, timeout_seconds);
  if (!answer) throw answer.error().error;
  return *std::move(answer);
}

std::string fetch_status(const CoordinatorInfo& info, const std::string& run_directory) {
  return call_run(info, run_directory, Repeat::unless_refused, "GET", "/v2/status", "");
}

void request_control(const CoordinatorInfo& info, const std::string& run_directory, const std::string& kind,
                     double value, const std::string& reason) {
  call_run(info, run_directory, Repeat::if_without_effect, "POST", "/v2/control", control_body(kind, value, reason));
}

std::vector<int64_t> request_revocation(const CoordinatorInfo& info, const std::string& run_directory,
                                        const std::string& token_id) {
  const std::string body = dump({{"token", token_id}});
  const auto json = parse_json(call_run(info, run_directory, Repeat::unless_refused, "POST", "/v2/revoke", body));
  std::vector<int64_t> members;
  const Json* ids = json ? member_of(*json, "members") : nullptr;
  bool understood = ids != nullptr && ids->is_array();
  for (size_t i = 0; understood && i < ids->size(); ++i) {
    understood = (*ids)[i].is_number_integer();
    if (understood) members.push_back((*ids)[i].get<int64_t>());
  }
  if (understood) return members;
  throw Error(kAnswerDamaged,
              run_directory + ": the coordinator's answer does not say which members had the token " + token_id,
              "`sinew ps` shows the join tokens of the members: if one still has this token, repeat the command");
}

void request_scale(const CoordinatorInfo& info, const std::string& run_directory, int64_t wanted) {
  call_run(info, run_directory, Repeat::unless_refused, "POST", "/v2/scale", scale_body(wanted));
}

}  // namespace sinew::cluster
