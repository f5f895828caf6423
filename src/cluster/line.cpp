#include "cluster/line.h"

#include "base/error.h"
#include "base/hash.h"
#include "cluster/json.h"

namespace sinew::cluster {
namespace {

std::expected<http::Response, http::Failure> checked(std::expected<http::Response, http::Failure> response) {
  if (!response) return response;
  const auto sum = response->headers.find(kSumHeader);
  if (sum != response->headers.end() && sum->second == sum_of(*response)) return response;
  const Trouble trouble = trouble_of(*response);
  return std::unexpected(
      http::Failure{http::Failure::Kind::broken, "an answer that is not as a coordinator sent it: " + trouble.error +
                                                     (trouble.hint.empty() ? "" : " (" + trouble.hint + ")")});
}

}  // namespace

std::string sum_of(const http::Request& request) {
  const auto found = request.headers.find("authorization");
  std::string token = found == request.headers.end() ? "" : found->second;
  token.resize(token.find_last_not_of(' ') + 1);  // HTTP takes blanks at the end of a header away
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
  std::shared_ptr<http::Client> now;
  try {
    now = client();
  } catch (const std::exception& trouble) {  // of finding out where it is: out of descriptors, a disk that is away
    return std::unexpected(http::Failure{http::Failure::Kind::broken, trouble.what()});
  }
  if (!now) return std::unexpected(http::Failure{http::Failure::Kind::broken, "cancelled"});
  auto response = checked(now->send(request_with(options_.secret, method, target, std::move(body)), timeout_seconds));
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
  const auto response = checked(client.send(request_with(secret, method, path, body), timeout_seconds));
  if (!response) {
    throw Error("the coordinator is not reached: " + response.error().what,
                "does the run still go on? its run directory says where its coordinator listens");
  }
  if (response->status >= 200 && response->status < 300) return response->body;
  const Trouble trouble = trouble_of(*response);
  throw Error(trouble.error, trouble.hint);
}

}  // namespace sinew::cluster
