// Who comes in, and how often: the token of a request, its role, and the allowance of its caller. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "web/allowance.h"
#include "web/web.h"

namespace sinew::web {

struct Visitor {
  Role role = Role::kNobody;
  std::string who;
};

class Auth {
 public:
  explicit Auth(const Options& options);
  // Of a bearer token, or of HTTP's basic form with the token for a password, as MLflow's client sends one. Throws
  // Refused for what a page of another site asks.
  Visitor visitor(const http::Request& request);
  // Whether who asked once may still do what takes that role: of an answer that goes on for long.
  bool still_may(const http::Request& request, Role role);
  // 0: go ahead; else the seconds to wait. Those who may not come in are counted by their address.
  double wait_seconds(const http::Request& request, const Visitor& visitor);

 private:
  void look_at_file();

  const Options& options_;
  std::mutex mutex_;
  std::vector<Token> tokens_;
  double looked_at_ = -1e9;
  Allowance allowance_, strangers_;
};

}  // namespace sinew::web
