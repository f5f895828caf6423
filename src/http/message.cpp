#include "http/message.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>

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

// A body as it comes. Beast's own would reserve as much as the header claims is to come.
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

// One message off a stream of bytes, with the parser that never sees more than it may.
template <bool is_request>
struct MessageReader {
  explicit MessageReader(size_t max_header_bytes) {
    parser.header_limit(static_cast<uint32_t>(std::min<size_t>(max_header_bytes, UINT32_MAX)));
    parser.body_limit(boost::none);  // known when the header is
    parser.eager(true);
  }

  // What comes of it all: need_more, no error, or what is wrong. `on_header` is called once, when the header is whole
  // and before anything of the body is looked at: the parser adds what trails a chunked body to the header's fields,
  // where a client could slip in what was judged to be absent. It says how large the body may be.
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
        const size_t most = on_header();
        const auto length = parser.content_length();
        if (!skips_body && length && *length > most) {
          error = beast::error::body_limit;
          break;
        }
        parser.body_limit(most);
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
  beast::parser<is_request, PieceBody> parser;
  Headers headers;
  bool skips_body = false;
};

}  // namespace

struct RequestReader::State {
  State(size_t max_header_bytes_, size_t max_body_bytes_, const Gate* gate_, std::string peer)
      : max_header_bytes(max_header_bytes_), max_body_bytes(max_body_bytes_), gate(gate_), reader(max_header_bytes_) {
    request.peer = std::move(peer);
  }

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

  size_t on_header() {
    const auto text = reader.parser.get().target();
    auto target = parse_target({text.data(), text.size()});
    std::string trouble = trouble_with_header();
    if (trouble.empty() && !target) trouble = target.error();
    if (trouble.empty()) {
      request.method = std::string(reader.parser.get().method_string());
      request.target = std::string(text);
      request.path = std::move(target->path);
      request.query = std::move(target->query);
      request.repeated = std::move(target->repeated);
      request.headers = std::move(reader.headers);
      trouble = pass_gate();
    }
    if (!trouble.empty()) refusal = error_response(400, trouble, "send a request as RFC 9112 has it");
    return max_body_bytes;
  }

  std::string pass_gate() {
    Intake intake;
    if (gate != nullptr && *gate) intake = (*gate)(request);
    if (intake.refusal) refusal = std::move(intake.refusal);
    for (const auto& [name, values] : request.repeated) {
      if (intake.repeatable == nullptr || !intake.repeatable->contains(name)) {
        return "the query names '" + name + "' twice";
      }
    }
    if (intake.max_body_bytes) max_body_bytes = *intake.max_body_bytes;
    request.sink = std::move(intake.sink);
    return "";
  }

  // What came of the body goes on to the sink.
  void pass_on() {
    std::string& body = reader.parser.get().body();
    if (!request.sink || body.empty() || refusal) return;
    refusal = request.sink->take(body);
    body.clear();
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

  const size_t max_header_bytes;
  size_t max_body_bytes;
  const Gate* const gate;
  MessageReader<true> reader;
  bool continue_told = false;
  Request request;
  std::optional<Response> refusal;
};

RequestReader::RequestReader(size_t max_header_bytes, size_t max_body_bytes, const Gate* gate, std::string peer)
    : state_(std::make_unique<State>(max_header_bytes, max_body_bytes, gate, std::move(peer))) {}
RequestReader::~RequestReader() = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

Reading RequestReader::feed(std::string& bytes) {
  State& state = *state_;
  error_code error;
  try {
    error = state.reader.feed(bytes, [&] { return state.on_header(); });
    state.pass_on();
  } catch (const std::exception& exception) {
    state.refusal = error_response(500, exception.what());
  }
  if (state.refusal) return Reading::refused;
  if (error && error != beast::error::need_more) {
    state.refusal = state.refusal_of(error);
    return Reading::refused;
  }
  return error ? Reading::more : Reading::done;
}

bool RequestReader::has_header() const {
  return state_->reader.parser.is_header_done();
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
    const Reading reading = state_->judge(state_->reader->feed(bytes, [&] { return state_->max_body_bytes; }));
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

}  // namespace sinew::http
