// For tests: a handler that echoes the request, throws, drops its Answer or keeps it. The path of the request decides.
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "http/http.h"

namespace sinew::http {

class HeldAnswers {
 public:
  Handler handler() {
    return [this](const Request& request, Answer answer) {
      if (request.path == "/throw") throw Error("TEST_BROKEN", "it is broken", "mend it");
      if (request.path == "/throw-int") throw 7;
      if (request.path == "/drop") return;
      if (request.path == "/hold") {
        const std::lock_guard lock(mutex_);
        held_.emplace_back(request.query.contains("id") ? request.query.at("id") : "", std::move(answer));
        return;
      }
      answer({200, request.method + " " + request.target + " " + request.body, "text/plain", {}});
    };
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  // Returns the Answers that the handler kept, each with the id of its request.
  std::vector<std::pair<std::string, Answer>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(held_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, Answer>> held_;
};

}  // namespace sinew::http
