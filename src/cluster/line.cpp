#include "cluster/line.h"

#include "base/error.h"
#include "cluster/json.h"

namespace sinew::cluster {

http::Request request_with(const std::string& secret, const std::string& method, const std::string& target,
                           std::string body) {
  http::Request request;
  request.method = method;
  request.target = target;
  request.headers["authorization"] = "Bearer " + secret;
  if (!body.empty()) request.headers["content-type"] = "application/json";
  request.body = std::move(body);
  return request;
}

Trouble trouble_of(const http::Response& response) {
  const auto json = parse_json(response.body);
  Trouble trouble;
  if (json) {
    trouble.error = text_of(*json, "error", 4096).value_or("");
    trouble.hint = text_of(*json, "hint", 4096).value_or("");
  }
  if (trouble.error.empty()) trouble.error = "the coordinator answered with status " + std::to_string(response.status);
  return trouble;
}

std::shared_ptr<http::Client> Line::client() {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return nullptr;
    if (client_) return client_;
  }
  const std::string url = options_.url();  // may read a file: not under the lock
  http::ClientOptions http;
  http.shared_secret = options_.secret;
  auto fresh = std::make_shared<http::Client>(url, http);
  const std::lock_guard lock(mutex_);
  if (cancelled_) return nullptr;
  return client_ = fresh;
}

std::expected<http::Response, http::Failure> Line::send(const std::string& method, const std::string& target,
                                                        std::string body, double timeout_seconds) {
  const auto now = client();
  if (!now) return std::unexpected(http::Failure{http::Failure::Kind::broken, "cancelled"});
  auto response = now->send(request_with(options_.secret, method, target, std::move(body)), timeout_seconds);
  // A coordinator that stops, or something else that listens where it did: ask anew where to go.
  if (!response || response->status >= 500 || response->status == 401 || response->status == 404) {
    const std::lock_guard lock(mutex_);
    client_.reset();
  }
  return response;
}

void Line::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (client_) client_->cancel();
}

std::string call(const std::string& url, const std::string& secret, const std::string& method, const std::string& path,
                 const std::string& body, double timeout_seconds) {
  http::ClientOptions options;
  options.shared_secret = secret;
  http::Client client(url, options);
  const auto response = client.send(request_with(secret, method, path, body), timeout_seconds);
  if (!response) {
    throw Error("the coordinator is not reached: " + response.error().what,
                "does the run still go on? its run directory says where its coordinator listens");
  }
  if (response->status >= 200 && response->status < 300) return response->body;
  const Trouble trouble = trouble_of(*response);
  throw Error(trouble.error, trouble.hint);
}

}  // namespace sinew::cluster
