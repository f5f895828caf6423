// A member's connection to whichever process is the coordinator now, and how calls and answers are protected.
#pragma once

#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "cluster/client.h"
#include "http/http.h"

namespace sinew::cluster {

// HTTP carries no checksum, so a bit that changes on the way would be believed. Therefore answers, and the calls of
// members, carry a digest of everything in them that counts. Other callers may leave it out.
inline constexpr const char* kSumHeader = "x-sinew-sum";
std::string sum_of(const http::Request& request);    // of method, target, token and body
std::string sum_of(const http::Response& response);  // of status and body
bool is_as_sent(const http::Request& request);       // its sum fits, or it has none

// A request with the token and its sum.
http::Request request_with(const std::string& secret, const std::string& method, const std::string& target,
                           std::string body);

// nullopt: the answer is as a coordinator of this version sent it.
std::optional<Error> problem_with(const http::Response& response);

// The error that the body of an answer describes. If the body describes none, the error names the status.
Error error_in(const http::Response& response);

// One thread sends; any thread may call cancel().
class CoordinatorConnection {
 public:
  explicit CoordinatorConnection(const ClientOptions& options) : options_(options) {}
  // Asks for the url again after every failure, because a successor may listen elsewhere. An answer that is not as a
  // coordinator sent it is a failure.
  std::expected<http::Response, http::Failure> send(const std::string& method, const std::string& target,
                                                    std::string body, double timeout_seconds);
  void cancel();  // ends the current call and all later ones at once

 private:
  std::shared_ptr<http::Client> client();

  const ClientOptions& options_;
  std::mutex mutex_;
  std::shared_ptr<http::Client> client_;
  bool cancelled_ = false;
};

}  // namespace sinew::cluster
