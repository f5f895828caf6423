// Inside http/: reads and writes HTTP/1.1 messages. Readers parse messages from a stream that arrives in pieces of any
// size; writers produce the bytes of a message. Pure; the readers accept any bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/http.h"

namespace sinew::http {

enum class ParseState { need_more, done, refused };

// Parses one request. Each further request of a connection needs a new reader.
class RequestReader {
 public:
  // Calls `admission` once, when the header is complete. `admission` must outlive the reader; null admits every
  // request. `peer` becomes Request::peer.
  RequestReader(size_t max_header_bytes, size_t max_body_bytes, const Admission* admission = nullptr,
                std::string peer = "");
  ~RequestReader();
  RequestReader& operator=(RequestReader&&) noexcept;
  // Removes the bytes of this request from the front of `bytes`. Do not call it after `done` or `refused`.
  ParseState feed(std::string& bytes);
  bool wants_continue();              // true at most once: the client waits for "100 Continue" before it sends the body
  bool has_header() const;            // the header is complete
  size_t body_bytes() const;          // the size of the body that is in memory so far
  const std::string& sender() const;  // Decision::sender
  Request take();                     // after done
  bool keep_alive() const;            // after done
  bool chunks_allowed() const;        // after done: the client understands a chunked response
  bool head_only() const;             // after done: the response has no body (a HEAD request)
  // after refused: status 400, 413 or 431, or the response of the admission function or the sink
  const Response& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Parses one response. The response to a HEAD request has no body.
class ResponseReader {
 public:
  ResponseReader(size_t max_body_bytes, bool to_head);
  ~ResponseReader();
  ParseState feed(std::string& bytes);  // works like RequestReader::feed
  ParseState end();                     // call it when the server has closed the connection
  Response take();                      // call it after `done`
  bool keep_alive() const;              // call it after `done`
  const Failure& refusal() const;       // call it after `refused`: broken or too_large

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Makes a response with an error as JSON: {"error": what, "code": code, "hint": hint}.
Response error_response(int status, ErrorCode code, std::string_view what, std::string_view hint = "");

// Returns the bytes of a response. If HTTP cannot express it (a line break in a header, an invalid status), returns a
// response with status 500. If the body comes from a source, returns only the header, which announces a chunked body if
// `chunked`. wants_source() returns whether the source's body follows the header.
std::string response_text(const Response& response, bool keep_alive, bool head_only, bool chunked = false);
bool wants_source(const Response& response, bool head_only);

// Returns why HTTP cannot express the request, or "" if it can.
std::string unsendable(const Request& request);
std::string request_text(const Request& request, std::string_view host);

}  // namespace sinew::http
