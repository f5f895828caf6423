#include "http/message.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <nlohmann/json.hpp>

#include "http/url.h"

namespace sinew::http {
namespace {

namespace beast = boost::beast::http;
using boost::system::error_code;

constexpr size_t kMaxResponseHeaderBytes = 64 << 10;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// A header given twice is one list, as RFC 9110 reads it.
Headers headers_of(const beast::fields& fields) {
  Headers headers;
  for (const auto& field : fields) {
    const auto name = field.name_string(), value = field.value();
    auto [at, fresh] = headers.emplace(lower_case({name.data(), name.size()}), std::string(value));
    if (!fresh) at->second += (at->first == "cookie" ? "; " : ", ") + std::string(value);
  }
  return headers;
}

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

// Headers that say where a message ends are this file's business alone.
bool is_framing(std::string_view name) {
  return name == "content-length" || name == "transfer-encoding" || name == "connection";
}

std::string trouble_with(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) return "the name of the header '" + name + "' has a character in it that none may have";
    if (!is_header_value(value)) return "the header '" + name + "' has a line break or another control character in it";
    if (is_framing(lower_case(name))) return "the header '" + name + "' is set by the connection";
  }
  return "";
}

// One message off a stream of bytes, with the parser that never sees more than it may.
template <bool is_request>
struct MessageReader {
  explicit MessageReader(size_t max_header_bytes, size_t max_body_bytes) {
    parser.header_limit(static_cast<uint32_t>(std::min<size_t>(max_header_bytes, UINT32_MAX)));
    parser.body_limit(max_body_bytes);
    parser.eager(true);
  }

  // What comes of it all: need_more, no error, or what is wrong. `on_header` is called once, when the header is whole
  // and before anything of the body is looked at: the parser adds what trails a chunked body to the header's fields,
  // where a client could slip in what was judged to be absent.
  template <typename OnHeader>
  error_code feed(std::string& bytes, OnHeader on_header) {
    error_code error = beast::error::need_more;
    size_t used = 0;
    while (used < bytes.size() && !parser.is_done()) {
      const bool had_header = parser.is_header_done();
      if (had_header && parser.chunked() && bytes.size() - used < kShortestLastChunk) {
        error = beast::error::need_more;
        break;
      }
      parser.eager(had_header);
      const size_t now = parser.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), error);
      used += now;
      if (error) break;
      if (!had_header && parser.is_header_done()) {
        headers = headers_of(parser.get());
        on_header();
      }
      if (now == 0) break;
    }
    bytes.erase(0, used);
    if (!error && !parser.is_done()) error = beast::error::need_more;
    // What stays unused is part of a line: of the header, which the parser bounds, or of a chunk's, which it does not.
    if (error == beast::error::need_more && bytes.size() > kLongestLine && parser.is_header_done()) {
      error = beast::error::header_limit;
    }
    return error;
  }

  static constexpr size_t kLongestLine = 16 << 10;
  // "0\r\n\r\n": so much is still to come whenever a chunked body is not done, and the parser asserts that it is there
  // when it looks at a last chunk for the second time.
  static constexpr size_t kShortestLastChunk = 5;
  beast::parser<is_request, beast::string_body> parser;
  Headers headers;
};

}  // namespace

struct RequestReader::State {
  State(size_t max_header_bytes_, size_t max_body_bytes_)
      : max_header_bytes(max_header_bytes_),
        max_body_bytes(max_body_bytes_),
        reader(max_header_bytes_, max_body_bytes_) {}

  Response refusal_of(error_code error) const {
    if (error == beast::error::body_limit) {
      return error_response(413, "the body is larger than " + std::to_string(max_body_bytes) + " bytes",
                            "send less at once");
    }
    if (error == beast::error::header_limit) {
      return error_response(431, "the header is larger than " + std::to_string(max_header_bytes) + " bytes",
                            "send fewer or shorter headers");
    }
    return error_response(400, "this is not an HTTP/1.1 request: " + error.message(), "speak HTTP/1.1");
  }

  void on_header() {
    const auto text = reader.parser.get().target();
    auto target = parse_target({text.data(), text.size()});
    trouble = trouble_with_header();
    if (trouble.empty() && !target) trouble = target.error();
    if (!trouble.empty()) return;
    request.path = std::move(target->path);
    request.query = std::move(target->query);
  }

  // What the parser lets pass and a server must not. Empty: fine.
  std::string trouble_with_header() const {
    const auto& message = reader.parser.get();
    const auto encoding = message[beast::field::transfer_encoding];
    // With an encoding it does not know a server can not tell where the body ends.
    if (message.count(beast::field::transfer_encoding) > 0 && !beast::token_list(encoding).exists("chunked")) {
      return "the transfer encoding is not 'chunked'";
    }
    if (!encoding.empty() && encoding.find(',') != encoding.npos) return "the transfer encoding is not 'chunked' alone";
    const size_t hosts = message.count(beast::field::host);
    if (hosts > 1) return "there is more than one Host header";
    if (hosts == 0 && message.version() >= 11) return "there is no Host header";
    return "";
  }

  const size_t max_header_bytes, max_body_bytes;
  MessageReader<true> reader;
  bool continue_told = false;
  std::string trouble;
  Request request;
  Response refusal;
};

RequestReader::RequestReader(size_t max_header_bytes, size_t max_body_bytes)
    : state_(std::make_unique<State>(max_header_bytes, max_body_bytes)) {}
RequestReader::~RequestReader() = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

Reading RequestReader::feed(std::string& bytes) {
  State& state = *state_;
  const error_code error = state.reader.feed(bytes, [&] { state.on_header(); });
  if (!state.trouble.empty()) {
    state.refusal = error_response(400, state.trouble, "send a request as RFC 9112 has it");
    return Reading::refused;
  }
  if (error && error != beast::error::need_more) {
    state.refusal = state.refusal_of(error);
    return Reading::refused;
  }
  return error ? Reading::more : Reading::done;
}

bool RequestReader::wants_continue() {
  State& state = *state_;
  auto& parser = state.reader.parser;
  if (!parser.is_header_done() || parser.is_done() || std::exchange(state.continue_told, true)) return false;
  const auto expect = parser.get()[beast::field::expect];
  return parser.get().version() >= 11 && lower_case({expect.data(), expect.size()}) == "100-continue";
}

Request RequestReader::take() {
  auto message = state_->reader.parser.release();
  Request request = std::move(state_->request);
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  request.headers = std::move(state_->reader.headers);
  request.body = std::move(message.body());
  return request;
}

bool RequestReader::keep_alive() const {
  return state_->reader.parser.keep_alive();
}
bool RequestReader::head_only() const {
  return state_->reader.parser.get().method() == beast::verb::head;
}
const Response& RequestReader::refusal() const {
  return state_->refusal;
}

struct ResponseReader::State {
  State(size_t max_body_bytes_, bool to_head_) : max_body_bytes(max_body_bytes_), to_head(to_head_) { restart(); }

  void restart() {
    reader.emplace(kMaxResponseHeaderBytes, max_body_bytes);
    if (to_head) reader->parser.skip(true);
  }

  Reading judge(error_code error) {
    if (!error) return Reading::done;
    if (error == beast::error::need_more) return Reading::more;
    if (error == beast::error::body_limit) {
      refusal = {Failure::Kind::too_large, "an answer larger than " + std::to_string(max_body_bytes) + " bytes"};
    } else if (error == beast::error::partial_message) {
      refusal = {Failure::Kind::broken, "only part of an answer"};
    } else {
      refusal = {Failure::Kind::broken, "something that is no HTTP answer (" + error.message() + ")"};
    }
    return Reading::refused;
  }

  const size_t max_body_bytes;
  const bool to_head;
  std::optional<MessageReader<false>> reader;
  Failure refusal;
};

ResponseReader::ResponseReader(size_t max_body_bytes, bool to_head)
    : state_(std::make_unique<State>(max_body_bytes, to_head)) {}
ResponseReader::~ResponseReader() = default;

Reading ResponseReader::feed(std::string& bytes) {
  while (true) {
    const Reading reading = state_->judge(state_->reader->feed(bytes, [] {}));
    if (reading != Reading::done || state_->reader->parser.get().result_int() / 100 != 1) return reading;
    state_->restart();  // 100 Continue and its like come before the answer
    if (bytes.empty()) return Reading::more;
  }
}

Reading ResponseReader::end() {
  error_code error;
  if (!state_->reader->parser.got_some()) return state_->judge(beast::error::partial_message);
  state_->reader->parser.put_eof(error);
  return state_->judge(error);
}

Response ResponseReader::take() {
  auto message = state_->reader->parser.release();
  Response response;
  response.status = static_cast<int>(message.result_int());
  response.headers = std::move(state_->reader->headers);
  const auto type = response.headers.find("content-type");
  response.content_type = type == response.headers.end() ? "" : type->second;
  response.body = std::move(message.body());
  return response;
}

bool ResponseReader::keep_alive() const {
  return state_->reader->parser.keep_alive();
}
const Failure& ResponseReader::refusal() const {
  return state_->refusal;
}

Response error_response(int status, std::string_view what, std::string_view hint) {
  const nlohmann::ordered_json body{{"error", what}, {"hint", hint}};
  Response response;
  response.status = status;
  response.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return response;
}

std::string response_text(const Response& response, bool keep_alive, bool head_only) {
  std::string trouble = trouble_with(response.headers);
  if (response.headers.contains("content-type")) trouble = "the header 'content-type' is set by content_type";
  if (!is_header_value(response.content_type)) trouble = "the content type has a control character in it";
  if (response.status < 200 || response.status > 599) {
    trouble = "the status " + std::to_string(response.status) + " is none from 200 to 599";
  }
  if (!trouble.empty()) {
    return response_text(error_response(500, "the server made an answer it can not send: " + trouble), keep_alive,
                         head_only);
  }
  const bool no_body = response.status == 204 || response.status == 304;
  const auto reason = beast::obsolete_reason(static_cast<beast::status>(response.status));
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " + std::string(reason) + "\r\n";
  if (!no_body) {
    if (!response.content_type.empty()) text += "content-type: " + response.content_type + "\r\n";
    text += "content-length: " + std::to_string(response.body.size()) + "\r\n";
  }
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  text += keep_alive ? "connection: keep-alive\r\n\r\n" : "connection: close\r\n\r\n";
  if (!no_body && !head_only) text += response.body;
  return text;
}

std::string unsendable(const Request& request) {
  if (!is_token(request.method)) return "the method '" + request.method + "' is no HTTP method";
  if (request.method == "CONNECT") return "the method CONNECT is for proxies";
  if (!is_sendable_target(request.target)) {
    return "the target '" + request.target + "' does not begin with '/' or has a character in it that must be encoded";
  }
  if (request.headers.contains("host")) return "the header 'host' is set by the connection";
  return trouble_with(request.headers);
}

std::string request_text(const Request& request, std::string_view host) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\nhost: " + std::string(host) + "\r\n";
  const bool has_body = !request.body.empty() || (request.method != "GET" && request.method != "HEAD");
  if (has_body) text += "content-length: " + std::to_string(request.body.size()) + "\r\n";
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
  return text + "\r\n" + request.body;
}

}  // namespace sinew::http
