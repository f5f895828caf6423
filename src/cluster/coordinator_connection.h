// The connection to whichever process is the coordinator now, and how calls and answers are protected. Members, the
// supervisor and the user's commands all speak to a coordinator through it.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "http/http.h"

namespace sinew::cluster {

// HTTP carries no checksum, so a receiver could not notice that a bit changed on the way. All answers, and the calls of
// members, therefore carry a digest of their meaningful parts. Other callers may leave the digest out.
//
// A call has a second sum, of all but its body. The coordinator takes no body of a caller whose token is wrong, and so
// it must know before it reads the body whether the token changed on the way.
inline constexpr const char* kSumHeader = "x-sinew-sum";
inline constexpr const char* kHeadSumHeader = "x-sinew-head-sum";
std::string sum_of(const http::Request& request);       // over method, target, token and body
std::string head_sum_of(const http::Request& request);  // over method, target and token
std::string sum_of(const http::Response& response);     // over status and body
// Return true if the call has no such sum, or the right one. The second function needs no body.
bool is_as_sent(const http::Request& request);
bool head_is_as_sent(const http::Request& request);

// Makes a request that carries `secret` as its bearer token, and the sums of the request.
http::Request request_with(const std::string& secret, const std::string& method, const std::string& target,
                           std::string body);

// Returns what is wrong with an answer: its sum or its protocol version. Returns nullopt if the answer is intact and
// comes from a coordinator of this version.
std::optional<Error> problem_with(const http::Response& response);

// Returns the error that the body of an answer describes. If the body describes none, the error names the status.
Error error_in(const http::Response& response);

// Where a coordinator listens, and the secret of its run or a join token. With https:// the connection trusts only a
// server with the run's key.
struct CoordinatorPlace {
  std::string url, secret;
};

// Why a call has no usable answer.
struct CallFailure {
  http::Failure::Kind kind = http::Failure::Kind::broken;
  std::string what;
  std::optional<Error> damaged = std::nullopt;  // an answer came, but not as a coordinator of this version sends it
};

// The connection to the coordinator. One thread calls send(); any thread may call cancel().
class CoordinatorConnection {
 public:
  // `place` is called for every new connection; it may throw.
  explicit CoordinatorConnection(std::function<CoordinatorPlace()> place) : place_(std::move(place)) {}
  // Sends one call and returns the answer of any status, within `timeout_seconds`. Determines the place again after
  // every failure, because a successor may listen elsewhere.
  std::expected<http::Response, CallFailure> send(const std::string& method, const std::string& target,
                                                  std::string body, double timeout_seconds);
  void cancel();  // ends the current call and all later ones at once

 private:
  std::shared_ptr<http::Client> client(std::string& secret);

  const std::function<CoordinatorPlace()> place_;
  std::mutex mutex_;
  std::shared_ptr<http::Client> client_;
  std::string secret_;  // the secret of the place to which client_ is connected
  bool cancelled_ = false;
};

}  // namespace sinew::cluster
