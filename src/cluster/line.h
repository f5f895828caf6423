// One connection of a member to whoever is the coordinator now.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "cluster/cluster.h"

namespace sinew::cluster {

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
  // The url is asked for again after every failure: a successor may listen elsewhere.
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
