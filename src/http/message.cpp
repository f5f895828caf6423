#include "http/message.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>

#include "base/lower_case.h"
#include "http/url.h"

namespace sinew::http {
namespace {

namespace beast = boost::beast::http;
using boost::system::error_code;

constexpr size_t kMaxResponseHeaderBytes = 64 << 10;

// Joins the values of a header that occurs more than once into one list, as RFC 9110 defines it.
Headers headers_of(const beast::fields& fields) {
  Headers headers;
  for (const auto& field : fields) {
    const auto name = field.name_string(), value = field.value();
    auto [at, fresh] = headers.emplace(lower_case({name.data(), name.size()}), std::string(value));
    if (!fresh) at->second += (at->first == "cookie" ? "; " : ", ") + std::string(value);
  }
  return headers;
}

// A body that grows as bytes arrive. Beast's string_body would reserve the whole length that the header announces.
struct PieceBody {
  using value_type = std::string;
  static uint64_t size(const value_type& body) { return body.size(); }
  class reader {  // NOLINT(readability-identifier-naming): the library's name
   public:
    template <bool is_request, class Fields>
    reader(beast::header<is_request, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      size_t size = 0;
      for (auto at = boost::asio::buffer_sequence_begin(buffers); at != boost::asio::buffer_sequence_end(buffers);
           ++at) {
        const boost::asio::const_buffer piece(*at);
        body_.append(static_cast<const char*>(piece.data()), piece.size());
        size += piece.size();
      }
      error = {};
      return size;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

// Parses one message from a stream of bytes, and limits what Beast's parser has to handle.
template <bool is_request>
struct MessageReader {
  explicit MessageReader(size_t max_header_bytes) {
    parser.header_limit(static_cast<uint32_t>(std::min<size_t>(max_header_bytes, UINT32_MAX)));
    parser.body_limit(boost::none);  // on_header sets the limit
    parser.eager(true);
  }

  // Returns no error if the message is complete, need_more if it is not, or the error in it. Calls `on_header` once,
  // when the header is complete and before it parses any of the body. `on_header` returns the limit of the body's size.
  // It must run before the body is parsed: the parser adds the trailer of a chunked body to the header's fields.
  // Otherwise a client could smuggle in a field that the check of the header has found absent.
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
        const size_t max_body = on_header();
        const auto length = parser.content_length();
        if (!skips_body && length && *length > max_body) {
          error = beast::error::body_limit;
          break;
        }
        parser.body_limit(max_body);
      }
      if (now == 0) break;
    }
    bytes.erase(0, used);
    if (!error && !parser.is_done()) error = beast::error::need_more;
    // What is left in `bytes` is an incomplete line. The parser limits the lines of a header, but not those between
    // chunks.
    if (error == beast::error::need_more && bytes.size() > kLongestLine && parser.is_header_done()) {
      error = beast::error::header_limit;
    }
    return error;
  }

  static constexpr size_t kLongestLine = 16 << 10;
  // The length of "0\r\n\r\n". An unfinished chunked body still has at least this many bytes to come. When the parser
  // parses a last chunk for the second time, it asserts that all of these bytes are there.
  static constexpr size_t kShortestLastChunk = 5;
  beast::parser<is_request, PieceBody> parser;
  Headers headers;
  bool skips_body = false;
};

}  // namespace

struct RequestReader::State {
  State(size_t max_header_bytes_, size_t max_body_bytes_, const Admission* admission_, std::string peer)
      : max_header_bytes(max_header_bytes_),
        max_body_bytes(max_body_bytes_),
        admission(admission_),
        reader(max_header_bytes_) {
    request.peer = std::move(peer);
  }

  Response refusal_of(error_code error) const {
    if (error == beast::error::body_limit) {
      return error_response(413, "HTTP_BODY_TOO_LARGE",
                            "the body is larger than " + std::to_string(max_body_bytes) + " bytes",
                            "send a smaller body");
    }
    if (error == beast::error::header_limit) {
      return error_response(431, "HTTP_HEADER_TOO_LARGE",
                            "the header is larger than " + std::to_string(max_header_bytes) + " bytes",
                            "send fewer or shorter headers");
    }
    return error_response(400, "HTTP_BAD_REQUEST", "this is not an HTTP/1.1 request: " + error.message(),
                          "send an HTTP/1.1 request");
  }

  size_t on_header() {
    const auto text = reader.parser.get().target();
    auto target = parse_target({text.data(), text.size()});
    std::string problem = problem_with_header();
    if (problem.empty() && !target) problem = target.error();
    if (problem.empty()) {
      request.method = std::string(reader.parser.get().method_string());
      request.target = std::string(text);
      request.path = std::move(target->path);
      request.query = std::move(target->query);
      request.repeated = std::move(target->repeated);
      request.headers = std::move(reader.headers);
      problem = admit();
    }
    if (!problem.empty())
      refusal = error_response(400, "HTTP_BAD_REQUEST", problem, "send a request as RFC 9112 defines it");
    return max_body_bytes;
  }

  // Calls the admission function. Returns what is wrong with the request, or "" if nothing is.
  std::string admit() {
    Decision decision;
    if (admission != nullptr && *admission) decision = (*admission)(request);
    if (decision.refusal) refusal = std::move(decision.refusal);
    for (const auto& [name, values] : request.repeated) {
      if (decision.repeatable == nullptr || !decision.repeatable->contains(name)) {
        return "the query has the parameter '" + name + "' more than once";
      }
    }
    if (decision.max_body_bytes) max_body_bytes = *decision.max_body_bytes;
    request.sink = std::move(decision.sink);
    sender = std::move(decision.sender);
    return "";
  }

  // Passes the bytes of the body that have arrived to the sink.
  void feed_sink() {
    std::string& body = reader.parser.get().body();
    if (!request.sink || body.empty() || refusal) return;
    refusal = request.sink->take(body);
    body.clear();
  }

  // Returns what is wrong with a header that the parser accepts but a server must refuse. Returns "" if nothing is
  // wrong.
  std::string problem_with_header() const {
    const auto& message = reader.parser.get();
    const auto encoding = message[beast::field::transfer_encoding];
    // A server that does not know the encoding of a body cannot tell where the body ends.
    if (message.count(beast::field::transfer_encoding) > 0 && !beast::token_list(encoding).exists("chunked")) {
      return "the transfer encoding is not 'chunked'";
    }
    if (!encoding.empty() && encoding.find(',') != encoding.npos) return "the transfer encoding is not 'chunked' alone";
    const size_t hosts = message.count(beast::field::host);
    if (hosts > 1) return "there is more than one Host header";
    if (hosts == 0 && message.version() >= 11) return "there is no Host header";
    return "";
  }

  const size_t max_header_bytes;
  size_t max_body_bytes;
  const Admission* const admission;
  MessageReader<true> reader;
  bool continue_asked = false;
  Request request;
  std::string sender;
  std::optional<Response> refusal;
};

RequestReader::RequestReader(size_t max_header_bytes, size_t max_body_bytes, const Admission* admission,
                             std::string peer)
    : state_(std::make_unique<State>(max_header_bytes, max_body_bytes, admission, std::move(peer))) {}
RequestReader::~RequestReader() = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

ParseState RequestReader::feed(std::string& bytes) {
  State& state = *state_;
  error_code error;
  try {
    error = state.reader.feed(bytes, [&] { return state.on_header(); });
    state.feed_sink();
  } catch (const std::exception& exception) {
    state.refusal = error_response(500, "HTTP_HANDLER_FAILED", exception.what());
  }
  if (state.refusal) return ParseState::refused;
  if (error && error != beast::error::need_more) {
    state.refusal = state.refusal_of(error);
    return ParseState::refused;
  }
  return error ? ParseState::need_more : ParseState::done;
}

bool RequestReader::has_header() const {
  return state_->reader.parser.is_header_done();
}

const std::string& RequestReader::sender() const {
  return state_->sender;
}

size_t RequestReader::body_bytes() const {
  return state_->reader.parser.get().body().size();
}

bool RequestReader::wants_continue() {
  State& state = *state_;
  auto& parser = state.reader.parser;
  if (!parser.is_header_done() || parser.is_done() || std::exchange(state.continue_asked, true)) return false;
  const auto expect = parser.get()[beast::field::expect];
  return parser.get().version() >= 11 && lower_case({expect.data(), expect.size()}) == "100-continue";
}

Request RequestReader::take() {
  auto message = state_->reader.parser.release();
  Request request = std::move(state_->request);
  request.body = std::move(message.body());
  return request;
}

bool RequestReader::chunks_allowed() const {
  return state_->reader.parser.get().version() >= 11;
}

bool RequestReader::keep_alive() const {
  return state_->reader.parser.keep_alive();
}
bool RequestReader::head_only() const {
  return state_->reader.parser.get().method() == beast::verb::head;
}
const Response& RequestReader::refusal() const {
  return *state_->refusal;
}

struct ResponseReader::State {
  State(size_t max_body_bytes_, bool to_head_) : max_body_bytes(max_body_bytes_), to_head(to_head_) { restart(); }

  void restart() {
    reader.emplace(kMaxResponseHeaderBytes);
    reader->skips_body = to_head;
    if (to_head) reader->parser.skip(true);
  }

  ParseState judge(error_code error) {
    if (!error) return ParseState::done;
    if (error == beast::error::need_more) return ParseState::need_more;
    if (error == beast::error::body_limit) {
      refusal = {Failure::Kind::too_large, "an answer larger than " + std::to_string(max_body_bytes) + " bytes"};
    } else if (error == beast::error::partial_message) {
      refusal = {Failure::Kind::broken, "only part of an answer"};
    } else {
      refusal = {Failure::Kind::broken, "something that is not an HTTP answer (" + error.message() + ")"};
    }
    return ParseState::refused;
  }

  const size_t max_body_bytes;
  const bool to_head;
  std::optional<MessageReader<false>> reader;
  Failure refusal;
};

ResponseReader::ResponseReader(size_t max_body_bytes, bool to_head)
    : state_(std::make_unique<State>(max_body_bytes, to_head)) {}
ResponseReader::~ResponseReader() = default;

ParseState ResponseReader::feed(std::string& bytes) {
  while (true) {
    const ParseState state = state_->judge(state_->reader->feed(bytes, [&] { return state_->max_body_bytes; }));
    if (state != ParseState::done || state_->reader->parser.get().result_int() / 100 != 1) return state;
    state_->restart();  // an interim response, such as 100 Continue, precedes the final one
    if (bytes.empty()) return ParseState::need_more;
  }
}

ParseState ResponseReader::end() {
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

}  // namespace sinew::http
