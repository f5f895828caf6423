#include "cluster/coordinator_connection.h"

#include "base/hash.h"
#include "cluster/json.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

std::unexpected<http::Failure> broken(std::string what) {
  return std::unexpected(http::Failure{http::Failure::Kind::broken, std::move(what)});
}

std::string to_sentence(const Error& error) {
  return std::string(error.what()) + (error.hint.empty() ? "" : " (" + error.hint + ")");
}

}  // namespace

std::string sum_of(const http::Request& request) {
  const auto found = request.headers.find("authorization");
  std::string token = found == request.headers.end() ? "" : found->second;
  token.resize(token.find_last_not_of(' ') + 1);  // HTTP removes blanks at the end of a header
  return to_hex(digest_of(request.method + " " + request.target + "\n" + token + "\n" + request.body));
}

std::string sum_of(const http::Response& response) {
  return to_hex(digest_of(std::to_string(response.status) + "\n" + response.body));
}

bool is_as_sent(const http::Request& request) {
  const auto sum = request.headers.find(kSumHeader);
  return sum == request.headers.end() || sum->second == sum_of(request);
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

std::shared_ptr<http::Client> CoordinatorConnection::client() {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return nullptr;
    if (client_) return client_;
  }
  const std::string url = options_.url();  // may read a file, so this thread does not hold the lock
  http::ClientOptions http;
  http.shared_secret = options_.secret;
  auto fresh = std::make_shared<http::Client>(url, http);
  const std::lock_guard lock(mutex_);
  if (cancelled_) return nullptr;
  return client_ = fresh;
}

std::expected<http::Response, http::Failure> CoordinatorConnection::send(const std::string& method,
                                                                         const std::string& target, std::string body,
                                                                         double timeout_seconds) {
  std::shared_ptr<http::Client> now;
  try {
    now = client();
  } catch (const std::exception& error) {  // the url cannot be read now: for example no free descriptor
    return broken(error.what());
  }
  if (!now) return broken("cancelled");
  auto response = now->send(request_with(options_.secret, method, target, std::move(body)), timeout_seconds);
  if (response) {
    if (const auto problem = problem_with(*response)) response = broken(to_sentence(*problem));
  }
  // The coordinator is stopping, or another program listens at its address. The next call determines the url again.
  if (!response || response->status >= 500 || response->status == 401 || response->status == 404) {
    const std::lock_guard lock(mutex_);
    client_.reset();
  }
  return response;
}

void CoordinatorConnection::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (client_) client_->cancel();
}

}  // namespace sinew::cluster
