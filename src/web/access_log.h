// Inside web/: writes the access log: one line for each finished request.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "http/http.h"
#include "web/web.h"

namespace sinew::web {

// Writes the lines. The file keeps only the newest lines, so a stranger (a caller without a valid token) could remove
// the traces of others by many requests. So strangers get only a few lines a minute; the rest is counted. Any thread
// may use it.
class AccessLog {
 public:
  static constexpr int kLinesOfAddress = 10, kLinesOfStrangers = 60;  // in a minute

  explicit AccessLog(const Options& options) : options_(options) {}
  bool is_on() const { return static_cast<bool>(options_.access_log); }
  double now() const { return options_.clock->monotonic_seconds(); }
  struct Line {
    std::string address, token, method, path;
    int status = 0;
    double ms = 0;
  };
  void write(const Line& line);

 private:
  struct Stranger {
    int lines = 0;
    int64_t left_out = 0;
  };
  void end_minute(double now);
  bool count_stranger(const std::string& address);

  const Options& options_;
  std::mutex mutex_;
  double minute_began_ = 0;
  int lines_of_strangers_ = 0;
  std::map<std::string, Stranger> strangers_;  // in this minute, by address; "" stands for addresses that are too many
};

// What the access log needs to know about a request. It holds no header, no query and no body, because these may
// contain secrets.
class AccessEntry {
 public:
  AccessEntry(AccessLog& log, const http::Request& request);
  // Sets the name of the token, once it is known.
  void set_token(const std::string& name) { line_.token = name; }
  // Writes the line. Any thread may call it. Further calls do nothing, because only the first answer reaches the client
  // (http.h).
  void finish(int status);

 private:
  AccessLog& log_;
  AccessLog::Line line_;
  const double began_;
  std::atomic<bool> finished_ = false;
};

}  // namespace sinew::web
