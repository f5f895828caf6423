// Inside web/: one line for each finished request.
#pragma once

#include <memory>
#include <string>

#include "http/http.h"
#include "web/web.h"

namespace sinew::web {

// What is known of a request while it runs. It holds no header, no query and no body, because these may contain
// secrets.
class AccessEntry {
 public:
  AccessEntry(const Options& options, const http::Request& request);
  // Sets the name of the token, once it is known.
  void set_token(const std::string& name) { token_ = name; }
  // Writes the line. Call it once.
  void finish(int status) const;

 private:
  const Options& options_;
  const std::string address_, method_, path_;
  const double began_;
  std::string token_;
};

}  // namespace sinew::web
