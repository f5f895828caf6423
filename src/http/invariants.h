// For tests and fuzzing: properties that hold for any bytes given to the readers of http/.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "http/http.h"
#include "http/message.h"
#include "http/url.h"

namespace sinew::http {

inline void check_url(std::string_view text) {
  const auto url = parse_url(text);
  if (!url) {
    SINEW_CHECK(!url.error().empty());
    return;
  }
  const auto again = parse_url((url->tls ? "https://" : "http://") + authority(url->host, url->port));
  SINEW_CHECK(again && again->tls == url->tls && again->host == url->host && again->port == url->port, text);
}

inline void check_target(std::string_view text) {
  SINEW_CHECK(percent_decode(percent_encode(text), true) == text, text);
  const auto target = parse_target(text);
  if (!target) {
    SINEW_CHECK(!target.error().empty());
    return;
  }
  SINEW_CHECK(target->path == "*" || target->path.starts_with('/'), text);
  SINEW_CHECK(target->path.find('\0') == std::string::npos, text);
  if (target->path == "*") return;
  std::string again = "/" + percent_encode(std::string_view(target->path).substr(1)) + "?";
  for (const auto& [name, value] : target->query) again += percent_encode(name) + "=" + percent_encode(value) + "&";
  for (const auto& [name, values] : target->repeated) {
    for (const auto& value : values) again += percent_encode(name) + "=" + percent_encode(value) + "&";
  }
  const auto back = parse_target(again);
  SINEW_CHECK(back && back->path == target->path, text);
  SINEW_CHECK(back->query == target->query && back->repeated == target->repeated, text);
}

constexpr size_t kCheckedHeaderBytes = 2000, kCheckedBodyBytes = 300;

// Parses the bytes in pieces of at most `piece` bytes. Returns the text of all requests that it finds, and the last
// state.
inline std::pair<std::string, ParseState> requests_in(std::string_view bytes, size_t piece) {
  std::string found, waiting;
  RequestReader reader(kCheckedHeaderBytes, kCheckedBodyBytes);
  ParseState state = ParseState::need_more;
  while (true) {
    if (!waiting.empty()) state = reader.feed(waiting);
    if (state == ParseState::done) {
      const bool keep_alive = reader.keep_alive();
      const Request request = reader.take();
      SINEW_CHECK(request.body.size() <= kCheckedBodyBytes && !request.method.empty());
      found += request.method + " " + request.target + (keep_alive ? " keep " : " close ");
      for (const auto& [name, value] : request.headers) found += name + "=" + value + ";";
      found += request.body + "\n";
      reader = RequestReader(kCheckedHeaderBytes, kCheckedBodyBytes);
      state = ParseState::need_more;
      if (!waiting.empty()) continue;
    }
    if (state == ParseState::refused) {
      const int status = reader.refusal().status;
      SINEW_CHECK(status == 400 || status == 413 || status == 431, status);
      return {found, state};
    }
    reader.wants_continue();
    if (bytes.empty()) return {found, state};
    waiting += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
}

// Checks that the reader finds the same requests whatever the size of the pieces. With smaller pieces the reader may
// only refuse a request earlier, because it can refuse a request before its end.
inline void check_requests(std::string_view bytes) {
  const auto whole = requests_in(bytes, bytes.size() + 1);
  for (const size_t piece : {1, 2, 7, 100}) {
    const auto pieces = requests_in(bytes, piece);
    SINEW_CHECK(pieces.first == whole.first, piece, bytes);
  }
}

inline void check_response(std::string_view bytes, bool to_head) {
  constexpr size_t kMost = 1000;
  for (const size_t piece : {bytes.size() + 1, size_t{1}, size_t{5}}) {
    ResponseReader reader(kMost, to_head);
    std::string waiting;
    ParseState state = ParseState::need_more;
    for (size_t at = 0; at < bytes.size() && state == ParseState::need_more; at += piece) {
      waiting += bytes.substr(at, piece);
      state = reader.feed(waiting);
    }
    if (state == ParseState::need_more) state = reader.end();
    SINEW_CHECK(state != ParseState::need_more || bytes.empty(), bytes);
    if (state == ParseState::done) SINEW_CHECK(reader.take().body.size() <= kMost);
    if (state == ParseState::refused) SINEW_CHECK(!reader.refusal().what.empty());
  }
}

}  // namespace sinew::http
