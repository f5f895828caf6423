#include "cluster/coordinator_connection.h"

#include "base/hash.h"
#include "cluster/join_token.h"
#include "cluster/json.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

std::unexpected<CallFailure> broken(std::string what) {
  return std::unexpected(CallFailure{http::Failure::Kind::broken, std::move(what)});
}

std::string to_sentence(const Error& error) {
  return std::string(error.what()) + (error.hint.empty() ? "" : " (" + error.hint + ")");
}

std::string head_of(const http::Request& request) {
  const auto found = request.headers.find("authorization");
  std::string token = found == request.headers.end() ? "" : found->second;
  token.resize(token.find_last_not_of(' ') + 1);  // HTTP removes blanks at the end of a header
  return request.method + " " + request.target + "\n" + token + "\n";
}

}  // namespace

std::string sum_of(const http::Request& request) {
  return to_hex(digest_of(head_of(request) + request.body));
}

std::string head_sum_of(const http::Request& request) {
  return to_hex(digest_of(head_of(request)));
}

std::string sum_of(const http::Response& response) {
  return to_hex(digest_of(std::to_string(response.status) + "\n" + response.body));
}

bool is_as_sent(const http::Request& request) {
  const auto sum = request.headers.find(kSumHeader);
  return sum == request.headers.end() || sum->second == sum_of(request);
}

bool head_is_as_sent(const http::Request& request) {
  const auto sum = request.headers.find(kHeadSumHeader);
  return sum == request.headers.end() || sum->second == head_sum_of(request);
}

http::Request request_with(const std::string& secret, const std::string& method, const std::string& target,
                           std::string body) {
  http::Request request;
  request.method = method;
  request.target = target;
  request.headers["authorization"] = "Bearer " + secret;
  if (!body.empty()) request.headers["content-type"] = "application/json";
  request.body = std::move(body);
  request.headers[kSumHeader] = sum_of(request);
  request.headers[kHeadSumHeader] = head_sum_of(request);
  return request;
}

std::optional<Error> problem_with(const http::Response& response) {
  const auto sum = response.headers.find(kSumHeader);
  if (sum == response.headers.end() || sum->second != sum_of(response)) {
    const Error error = error_in(response);
    return Error(kAnswerDamaged, std::string("the answer is not as a coordinator sent it: ") + error.what(),
                 error.hint);
  }
  const auto version = response.headers.find(kVersionHeader);
  const std::string spoken = version == response.headers.end() ? "1" : version->second;
  if (spoken == std::to_string(kProtocolVersion)) return std::nullopt;
  return Error(kVersionDiffers,
               "the coordinator speaks version " + spoken + " of its protocol, and this program version " +
                   std::to_string(kProtocolVersion),
               "use the version of sinew that started the run");
}

Error error_in(const http::Response& response) {
  std::string what, hint, code;
  if (const auto json = parse_json(response.body)) {
    what = text_of(*json, "error", 4096).value_or("");
    hint = text_of(*json, "hint", 4096).value_or("");
    code = text_of(*json, "code", 64).value_or("");
  }
  if (what.empty()) what = "the coordinator answered with status " + std::to_string(response.status);
  return Error(code_named(code), what, hint);
}

std::shared_ptr<http::Client> CoordinatorConnection::client(std::string& secret) {
  {
    const std::lock_guard lock(mutex_);
    secret = secret_;
    if (cancelled_) return nullptr;
    if (client_) return client_;
  }
  CoordinatorPlace place = place_();  // may read a file, so this thread does not hold the lock
  http::ClientOptions http;
  secret = place.secret;
  if (!secret.empty()) http.server_key = coordinator_key(secret);
  auto fresh = std::make_shared<http::Client>(place.url, http);
  const std::lock_guard lock(mutex_);
  if (cancelled_) return nullptr;
  secret_ = std::move(place.secret);
  return client_ = fresh;
}

std::expected<http::Response, CallFailure> CoordinatorConnection::send(const std::string& method,
                                                                       const std::string& target, std::string body,
                                                                       double timeout_seconds) {
  std::shared_ptr<http::Client> now;
  std::string secret;
  try {
    now = client(secret);
  } catch (const std::exception& error) {  // the place cannot be read now: for example no free descriptor
    return broken(error.what());
  }
  if (!now) return broken("cancelled");
  const auto answer = now->send(request_with(secret, method, target, std::move(body)), timeout_seconds);
  std::expected<http::Response, CallFailure> result = broken("");
  if (!answer) {
    result = std::unexpected(CallFailure{answer.error().kind, answer.error().what});
  } else if (auto problem = problem_with(*answer)) {
    result = broken(to_sentence(*problem));
    result.error().damaged = std::move(problem);
  } else {
    result = *answer;
  }
  // The coordinator is stopping, or another program listens at its address. The next call determines the place again.
  if (!result || result->status >= 500 || result->status == 401 || result->status == 404) {
    const std::lock_guard lock(mutex_);
    client_.reset();
  }
  return result;
}

void CoordinatorConnection::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (client_) client_->cancel();
}

}  // namespace sinew::cluster
