// Inside web/: authenticates requests: finds the token of a request and its role, and limits the rate of each caller.
// Any thread may use it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "web/rate_limiter.h"
#include "web/web.h"

namespace sinew::web {

struct Caller {
  Role role = Role::kNone;
  std::string name;                         // the token's name; empty without a valid token
  std::string address;                      // where the request came from
  std::shared_ptr<const Token> token = {};  // null without a valid token, and if the server has no tokens
};

class Auth {
 public:
  explicit Auth(const Options& options);
  // Reads a bearer token, or the password of HTTP basic authentication, as MLflow's client sends the token. If a web
  // page of another site sent the request, throws Refused: for every change if the server has tokens, and for every
  // request if it has none.
  Caller caller(const http::Request& request);
  // Returns whether the sender of the request still has the role. A long response checks it repeatedly, because the
  // token may be revoked meanwhile.
  bool still_allowed(const http::Request& request, Role role);
  // Counts a request. Returns 0 if it is allowed, or else the seconds to wait. Counts callers without a valid token by
  // their address.
  double wait_seconds(const http::Request& request, const Caller& caller);

 private:
  void reload_tokens();
  void report_failed_login(const std::string& address);

  const Options& options_;
  std::mutex mutex_;
  std::shared_ptr<const std::vector<Token>> tokens_ = std::make_shared<const std::vector<Token>>();
  std::string loaded_;  // state_of() the token file that was read last
  struct Failures {
    int64_t count = 0;
    double reported_at = 0;
  };
  std::map<std::string, Failures> failures_;  // failed logins by address, since the last report about it
  RateLimiter limiter_, unauthenticated_limiter_;
};

}  // namespace sinew::web
