// Inside web/: writes one line of the access log for each finished request.
#pragma once

#include <atomic>
#include <string>

#include "http/http.h"
#include "web/web.h"

namespace sinew::web {

// What the access log needs to know about a request. It holds no header, no query and no body, because these may
// contain secrets.
class AccessEntry {
 public:
  AccessEntry(const Options& options, const http::Request& request);
  // Sets the name of the token, once it is known.
  void set_token(const std::string& name) { token_ = name; }
  // Writes the line. Any thread may call it. Further calls do nothing, because only the first answer reaches the client
  // (http.h).
  void finish(int status);

 private:
  const Options& options_;
  const std::string address_, method_, path_;
  const double began_;
  std::string token_;
  std::atomic<bool> finished_ = false;
};

}  // namespace sinew::web
