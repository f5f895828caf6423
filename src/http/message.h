// HTTP/1.1 messages as bytes: read off a stream in whatever pieces it comes, and written. Pure; takes any bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/http.h"

namespace sinew::http {

enum class Reading { more, done, refused };

// One request off a connection; make another one for the next.
class RequestReader {
 public:
  // The gate, which is asked once the header is there, must outlive it; null: none. `peer`: of the request.
  RequestReader(size_t max_header_bytes, size_t max_body_bytes, const Gate* gate = nullptr, std::string peer = "");
  ~RequestReader();
  RequestReader& operator=(RequestReader&&) noexcept;
  // Takes from the front of `bytes` what belongs to this request. Not to be called after done or refused.
  Reading feed(std::string& bytes);
  bool wants_continue();            // true once: the client waits for "100 Continue" before it sends the body
  bool has_header() const;          // what is still to come is its body
  Request take();                   // after done
  bool keep_alive() const;          // after done
  bool chunks_allowed() const;      // after done: the client understands an answer in chunks
  bool head_only() const;           // after done: HEAD, the answer has no body
  const Response& refusal() const;  // after refused: 400, 413, 431, or what the gate or the sink said

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One response, to a HEAD request without a body.
class ResponseReader {
 public:
  ResponseReader(size_t max_body_bytes, bool to_head);
  ~ResponseReader();
  Reading feed(std::string& bytes);  // as above
  Reading end();                     // the server sent all it will
  Response take();                   // after done
  bool keep_alive() const;           // after done
  const Failure& refusal() const;    // after refused: broken or too_large

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// An error as a body of JSON: {"error": what, "hint": hint}.
Response error_response(int status, std::string_view what, std::string_view hint = "");

// A response that can not stand on the wire (a line break in a header, a status no client understands) becomes a 500.
// Of one with a source only the header, in chunks if `chunked`; then `wants_source` says whether its body is to follow.
std::string response_text(const Response& response, bool keep_alive, bool head_only, bool chunked = false);
bool wants_source(const Response& response, bool head_only);

// Empty: the request can be sent. Else why not, a sentence.
std::string unsendable(const Request& request);
std::string request_text(const Request& request, std::string_view host);

}  // namespace sinew::http
