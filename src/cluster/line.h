// One connection of a member to whoever is the coordinator now.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "cluster/cluster.h"

namespace sinew::cluster {

// HTTP carries no checksum: a bit that changes on the way would be believed. So calls and answers of members carry a
// digest of all that counts in them. Calls of people need not.
inline constexpr const char* kSumHeader = "x-sinew-sum";
std::string sum_of(const http::Request& request);    // method, target, token, body
std::string sum_of(const http::Response& response);  // status, body
bool is_as_sent(const http::Request& request);       // or carries no sum

// With its sum.
http::Request request_with(const std::string& secret, const std::string& method, const std::string& target,
                           std::string body);

// The two sentences of an error's body; what else came instead of them, if it is none.
struct Trouble {
  std::string error, hint;
};
Trouble trouble_of(const http::Response& response);

// Used by one thread; cancel() from any.
class Line {
 public:
  explicit Line(const ClientOptions& options) : options_(options) {}
  // The url is asked for again after every failure: a successor may listen elsewhere. An answer that is not as a
  // coordinator sent it is a failure.
  std::expected<http::Response, http::Failure> send(const std::string& method, const std::string& target,
                                                    std::string body, double timeout_seconds);
  void cancel();  // the call under way and all later ones end at once

 private:
  std::shared_ptr<http::Client> client();

  const ClientOptions& options_;
  std::mutex mutex_;
  std::shared_ptr<http::Client> client_;
  bool cancelled_ = false;
};

}  // namespace sinew::cluster
