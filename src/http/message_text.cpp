// Writes messages. Refuses what HTTP cannot express.
#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/status.hpp>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "http/message.h"
#include "http/url.h"

namespace sinew::http {
namespace {

namespace beast = boost::beast::http;

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_header_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != 0x7f); });
}

// Returns whether this header tells where a message ends or whether the connection stays open. Only this file sets such
// headers.
bool is_framing(std::string_view name) {
  return boost::beast::iequals({name.data(), name.size()}, "content-length") ||
         boost::beast::iequals({name.data(), name.size()}, "transfer-encoding") ||
         boost::beast::iequals({name.data(), name.size()}, "connection");
}

std::string problem_with(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) return "the header name '" + name + "' contains an invalid character";
    if (!is_header_value(value)) return "the header '" + name + "' contains a line break or another control character";
    if (is_framing(name)) return "only the connection sets the header '" + name + "'";
  }
  return "";
}

}  // namespace

Response error_response(int status, ErrorCode code, std::string_view what, std::string_view hint) {
  const nlohmann::ordered_json body{{"error", what}, {"code", code.text()}, {"hint", hint}};
  Response response;
  response.status = status;
  response.body = dump_json(body) + "\n";
  return response;
}

namespace {

bool may_have_body(const Response& response) {
  return response.status != 204 && response.status != 304;
}

std::string problem_with(const Response& response) {
  if (response.status < 200 || response.status > 599) {
    return "the status " + std::to_string(response.status) + " is not between 200 and 599";
  }
  if (!is_header_value(response.content_type)) return "the content type contains a control character";
  if (response.headers.contains("content-type")) return "Response::content_type sets the header 'content-type'";
  return problem_with(response.headers);
}

}  // namespace

bool wants_source(const Response& response, bool head_only) {
  return response.source && !head_only && may_have_body(response) && problem_with(response).empty();
}

std::string response_text(const Response& response, bool keep_alive, bool head_only, bool chunked) {
  if (const std::string problem = problem_with(response); !problem.empty()) {
    return response_text(
        error_response(500, "HTTP_HANDLER_FAILED", "the server made an answer that it cannot send: " + problem),
        keep_alive, head_only);
  }
  const bool no_body = !may_have_body(response);
  const auto reason = beast::obsolete_reason(static_cast<beast::status>(response.status));
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " + std::string(reason) + "\r\n";
  if (!no_body) {
    if (!response.content_type.empty()) text += "content-type: " + response.content_type + "\r\n";
    if (!response.source || response.source_bytes) {
      text += "content-length: " + std::to_string(response.source_bytes.value_or(response.body.size())) + "\r\n";
    } else if (chunked) {
      text += "transfer-encoding: chunked\r\n";
    }
  }
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  text += keep_alive ? "connection: keep-alive\r\n\r\n" : "connection: close\r\n\r\n";
  if (!no_body && !head_only && !response.source) text += response.body;
  return text;
}

std::string unsendable(const Request& request) {
  if (!is_token(request.method)) return "'" + request.method + "' is not an HTTP method";
  if (request.method == "CONNECT") return "the method CONNECT is for proxies";
  if (!is_sendable_target(request.target)) {
    return "the target '" + request.target +
           "' does not begin with '/', or contains a character that must be percent-encoded";
  }
  if (request.headers.contains("host")) return "only the connection sets the header 'host'";
  return problem_with(request.headers);
}

std::string request_text(const Request& request, std::string_view host) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\nhost: " + std::string(host) + "\r\n";
  const bool has_body = !request.body.empty() || (request.method != "GET" && request.method != "HEAD");
  if (has_body) text += "content-length: " + std::to_string(request.body.size()) + "\r\n";
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
  return text + "\r\n" + request.body;
}

}  // namespace sinew::http
