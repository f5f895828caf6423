#include "http/connection.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/error.h"

namespace sinew::http {
namespace {

constexpr size_t kMaxPendingInput = 64 << 10;   // bytes that are read ahead while a request is being answered
constexpr size_t kBytesPerDeadline = 64 << 10;  // bytes of a body that must move within read_seconds
constexpr double kDrainSeconds = 2;
constexpr size_t kLargeRead = 64 << 10;
constexpr double kSlowestDisk = 8 << 20;  // bytes per second; gives a request with a sink more time for its response
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// The promise of a value that a connection waits for. fulfil() passes the value to the connection; any thread may call
// it, and only the first call counts. All copies of an Answer or a Write share one promise. If the last copy is
// destroyed without a call, the connection gets the value that `Dropped` returns.
template <typename Value, auto Take, Value (*Dropped)()>
class Promise {
 public:
  Promise(std::shared_ptr<asio::io_context> context, const std::shared_ptr<Connection>& connection, uint64_t number)
      : context_(std::move(context)), executor_(connection->executor()), connection_(connection), number_(number) {}
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  ~Promise() {
    if (fulfilled_) return;
    try {
      fulfil(Dropped());
    } catch (const std::exception&) {
      // Out of memory. The connection's deadline will end the request.
    }
  }

  void fulfil(Value value) {
    if (fulfilled_.exchange(true)) return;
    // Captures a weak pointer, because a function that is posted to a stopped context must not keep the connection
    // alive.
    asio::post(executor_, [connection = connection_, number = number_, value = std::move(value)]() mutable {
      if (const auto held = connection.lock()) std::invoke(Take, *held, number, std::move(value));
    });
  }

 private:
  const std::shared_ptr<asio::io_context> context_;  // declared first, so that it is destroyed last
  const asio::any_io_executor executor_;
  const std::weak_ptr<Connection> connection_;
  const uint64_t number_;
  std::atomic<bool> fulfilled_ = false;
};

Response no_answer() {
  return error_response(500, "HTTP_HANDLER_FAILED", "the server dropped this request without an answer");
}
using AnswerPromise = Promise<Response, &Connection::answer, no_answer>;

using Piece = std::optional<std::string>;
Piece no_piece() {
  return std::nullopt;
}
using PiecePromise = Promise<Piece, &Connection::take_piece, no_piece>;

// Empties the text and frees its memory; clear() would keep it.
void release(std::string& text) {
  std::string().swap(text);
}

std::string chunk_of(const std::string& piece) {
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
  return size + piece + "\r\n";
}

Response response_to(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception))
    return error_response(500, error->code, error->what(), error->hint);
  return error_response(500, "HTTP_HANDLER_FAILED", exception.what());
}

}  // namespace

std::vector<std::shared_ptr<Connection>> Service::all() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<Connection>> held;
  guests.each([&](Connection* connection) {
    if (auto strong = connection->weak_from_this().lock()) held.push_back(std::move(strong));
  });
  return held;
}

bool Service::hold(const std::string& sender, int64_t more) {
  const auto most = static_cast<int64_t>(options.max_body_memory);
  const std::lock_guard lock(body_mutex);
  body_bytes += more;
  int64_t& of_sender = bytes_of_sender[sender];
  of_sender += more;
  const bool fits = body_bytes <= most && of_sender <= std::max(most / 4, static_cast<int64_t>(options.max_body_bytes));
  if (of_sender == 0) bytes_of_sender.erase(sender);
  return fits;
}

bool Service::make_room(const std::string& address) {
  std::shared_ptr<Connection> replaced;
  {
    const std::lock_guard lock(mutex);
    const Guests::Verdict verdict = guests.judge(address);
    if (!verdict.accepted) return false;
    if (verdict.replaced != nullptr) replaced = verdict.replaced->weak_from_this().lock();
  }
  if (replaced) asio::post(replaced->executor(), [replaced] { replaced->yield(); });
  return true;
}

Connection::Connection(std::unique_ptr<Pipe> pipe, std::shared_ptr<Service> service, std::string peer)
    : pipe_(std::move(pipe)),
      service_(std::move(service)),
      peer_(std::move(peer)),
      timer_(pipe_->socket().get_executor()) {
  const std::lock_guard lock(service_->mutex);
  service_->guests.add(this, peer_);
}

Connection::~Connection() {
  abandon();
  release_body();
  const std::lock_guard lock(service_->mutex);
  service_->guests.remove(this);
  service_->closed.notify_all();
}

// Counts the body of the current request as it grows. Returns false if it exceeds the limit for all bodies or for its
// sender.
bool Connection::hold_body() {
  const auto bytes = static_cast<int64_t>(reader_->body_bytes());
  if (bytes == held_bytes_) return true;
  if (held_bytes_ == 0) sender_ = reader_->sender().empty() ? peer_ : reader_->sender();
  return service_->hold(sender_, bytes - std::exchange(held_bytes_, bytes));
}

void Connection::release_body() {
  if (held_bytes_ != 0) service_->hold(sender_, -std::exchange(held_bytes_, 0));
}

// Sets Request::abandoned, to tell the handler that nobody waits for its answer any more.
void Connection::abandon() {
  if (abandoned_) *std::exchange(abandoned_, nullptr) = true;
}

void Connection::yield() {
  if (phase_ != Phase::awaiting_answer && !known_) close();
}

void Connection::start() {
  set_deadline(service_->options.read_seconds);
  pipe_->handshake([self = shared_from_this()](const error_code& error, size_t) {
    if (self->phase_ == Phase::closed) return;
    if (!error) return self->wait_for_request();
    if (peer_sent_http(error)) self->refuse_plain_http();
    self->close();
  });
}

// Tells a client that sent plain HTTP to use TLS. This response is plain HTTP, too. It fits into the send buffer of a
// new connection, so write_some sends all of it without blocking.
void Connection::refuse_plain_http() {
  error_code ignored;
  pipe_->socket().non_blocking(true, ignored);
  const Response refusal =
      error_response(400, "HTTP_TLS_REQUIRED", "this server uses TLS", "use the address that begins with https://");
  pipe_->socket().write_some(asio::buffer(response_text(refusal, false, false)), ignored);
  pipe_->socket().shutdown(tcp::socket::shutdown_send, ignored);
}

void Connection::wait_for_request() {
  const bool is_first = phase_ == Phase::handshake;
  phase_ = Phase::idle;
  const ServerOptions& options = service_->options;
  set_deadline(is_first ? std::min(options.read_seconds, options.idle_seconds) : options.idle_seconds);
  parse_input();
}

// Feeds the bytes that were read to the parser of the current request. Starts a new request if none is being read.
void Connection::parse_input() {
  if (!input_.empty()) {
    if (phase_ == Phase::idle) {
      phase_ = Phase::reading;
      // limits the whole header; a client cannot extend it by single bytes
      set_deadline(service_->options.read_seconds);
      reader_.emplace(service_->options.max_header_bytes, service_->options.max_body_bytes, &service_->admission,
                      peer_);
      received_ = request_bytes_ = 0;
      request_begun_ = std::chrono::steady_clock::now();
    }
    const size_t before = input_.size();
    const ParseState state = reader_->feed(input_);
    received_ += before - input_.size();
    request_bytes_ += before - input_.size();
    if (state == ParseState::refused) return refuse(reader_->refusal());
    if (!hold_body()) {
      Response refusal = error_response(503, "HTTP_OVERLOADED", "the bodies of all requests together are too large",
                                        "send the request again in a moment, or in smaller parts");
      refusal.headers["retry-after"] = "1";
      return refuse(refusal);
    }
    if (state == ParseState::done) return call_handler();
    if (reader_->wants_continue()) send(std::string(kContinue));
    const auto body_end = request_begun_ + to_duration(service_->options.body_seconds);
    if (held_bytes_ > 0 && std::chrono::steady_clock::now() > body_end) return refuse_slow_body();
    if (received_ >= kBytesPerDeadline) {  // no header is that long, so these bytes belong to a body
      set_deadline(service_->options.read_seconds);
      received_ = 0;
    }
  }
  if (input_ended_) return close();
  read_more();
}

// Refuses a request before all of it has arrived. The connection does not parse the rest.
void Connection::refuse(const Response& refusal) {
  keep_alive_ = head_only_ = false;
  refused_ = true;
  respond(refusal);
}

void Connection::call_handler() {
  phase_ = Phase::awaiting_answer;
  keep_alive_ = reader_->keep_alive();
  head_only_ = reader_->head_only();
  chunked_ = reader_->chunks_allowed();
  Request request = reader_->take();
  reader_.reset();
  abandoned_ = std::make_shared<std::atomic<bool>>(false);
  request.abandoned = abandoned_;
  // A waiting connection keeps no buffers. No pending read uses the large buffer, and read_more() makes a new one when
  // a later phase needs it.
  large_ = std::vector<char>();
  if (input_.empty()) release(input_);
  seconds_left_ = service_->options.answer_seconds;
  if (request.sink) seconds_left_ += static_cast<double>(request_bytes_) / kSlowestDisk;
  sends_continue_ = request.sink != nullptr && chunked_;
  wait_for_answer();
  {
    const auto promise = std::make_shared<AnswerPromise>(service_->context, shared_from_this(), ++number_);
    try {
      service_->handler(request, [promise](Response response) { promise->fulfil(std::move(response)); });
    } catch (const std::exception& exception) {
      promise->fulfil(response_to(exception));
    } catch (...) {
      promise->fulfil(error_response(500, "HTTP_HANDLER_FAILED", "the handler threw something that is no exception"));
    }
  }
  if (!input_ended_) return read_more();
  // The client has left, so close the connection. If the handler has answered at once, its response was posted before
  // this function. Then the connection still sends the response.
  asio::post(executor(), [self = shared_from_this(), number = number_] {
    if (self->phase_ == Phase::awaiting_answer && self->number_ == number) self->close();
  });
}

// The body of a request with a sink may be large, and the handler may need long to store it. For a time that grows with
// the body's size, the connection sends "100 Continue" now and then, so that the client keeps waiting. HTTP/1.0 has no
// such message, so clients that speak it get none.
void Connection::wait_for_answer() {
  const double seconds =
      sends_continue_ ? std::min(seconds_left_, service_->options.answer_seconds / 4) : seconds_left_;
  seconds_left_ -= seconds;
  set_deadline(seconds);
}

void Connection::answer(uint64_t number, const Response& response) {
  if (phase_ == Phase::awaiting_answer && number_ == number) respond(response);
}

void Connection::respond(const Response& response) {
  phase_ = Phase::responding;
  abandoned_ = nullptr;
  release_body();
  until_sent_ = response.until_sent;
  if (response.known_client && !known_) {
    const std::lock_guard lock(service_->mutex);
    known_ = service_->guests.make_known(this);
  }
  set_deadline(service_->options.read_seconds);
  since_deadline_ = 0;
  if (wants_source(response, head_only_)) {
    source_ = response.source;
    body_at_shutdown_ = response.body_at_shutdown;
    bytes_left_ = response.source_bytes;
    chunked_ = chunked_ && has_no_length();
    if (has_no_length() && !chunked_) keep_alive_ = false;  // only the end of the connection marks the end of the body
  }
  send(response_text(response, keep_alive_, head_only_, chunked_));
}

void Connection::request_piece() {
  phase_ = Phase::awaiting_piece;
  if (bytes_left_ == 0) return take_piece(++piece_number_, "");
  if (has_no_length() && finishing_) return take_piece(++piece_number_, std::exchange(body_at_shutdown_, ""));
  if (has_no_length() && input_ended_) return close();
  set_deadline(service_->options.answer_seconds);
  const auto promise = std::make_shared<PiecePromise>(service_->context, shared_from_this(), ++piece_number_);
  try {
    source_([promise](std::string piece) { promise->fulfil(std::move(piece)); });
  } catch (...) {
    // The header was sent already. The connection can only end early, which shows the client that the body is
    // incomplete.
    return promise->fulfil(std::nullopt);
  }
  read_more();
}

void Connection::take_piece(uint64_t number, std::optional<std::string> piece) {
  if (phase_ != Phase::awaiting_piece || number != piece_number_) return;
  if (!piece || (bytes_left_ && (piece->size() > *bytes_left_ || (piece->empty() && *bytes_left_ > 0)))) return close();
  phase_ = Phase::responding;
  set_deadline(service_->options.read_seconds);
  since_deadline_ = 0;
  if (piece->empty()) {
    source_ = nullptr;
    return chunked_ ? send("0\r\n\r\n") : end_response();
  }
  if (bytes_left_) *bytes_left_ -= piece->size();
  release(body_at_shutdown_);
  send(chunked_ ? chunk_of(*piece) : std::move(*piece));
}

void Connection::end_response() {
  until_sent_ = nullptr;
  if (keep_alive_) return wait_for_request();
  refused_ ? drain() : close();
}

// The server calls this function when the server shuts down. A body with a length may still be completed within the
// server's grace time. A body without a length ends now. With await_answers, a handler may still call its Answer.
void Connection::finish() {
  keep_alive_ = false;
  finishing_ = true;
  if (phase_ == Phase::awaiting_piece && has_no_length())
    return take_piece(piece_number_, std::exchange(body_at_shutdown_, ""));
  if (phase_ == Phase::awaiting_answer && service_->options.await_answers) return;
  if (phase_ != Phase::responding && phase_ != Phase::awaiting_piece) close();
}

// Reads and drops the rest of a refused request. If the connection closed at once, it would be reset while the client
// still sends, and the client might never read the refusal.
void Connection::drain() {
  if (input_ended_) return close();
  phase_ = Phase::draining;
  release(input_);
  error_code ignored;
  pipe_->socket().shutdown(tcp::socket::shutdown_send, ignored);
  set_deadline(std::min(service_->options.read_seconds, kDrainSeconds));
  read_more();
}

void Connection::close() {
  phase_ = Phase::closed;
  abandon();
  release_body();
  source_ = nullptr;
  until_sent_ = nullptr;
  timer_.cancel();
  error_code ignored;
  pipe_->socket().close(ignored);
}

void Connection::read_more() {
  if (reading_ || input_ended_) return;
  if (phase_ != Phase::draining && input_.size() >= kMaxPendingInput) return;
  reading_ = true;
  // Only the phases `reading` and `draining` read into the large buffer. call_handler() frees it.
  const bool small = phase_ != Phase::reading && phase_ != Phase::draining;
  if (!small && large_.empty()) large_.resize(kLargeRead);
  const auto into = small ? asio::buffer(small_) : asio::buffer(large_);
  pipe_->read_some(into, [self = shared_from_this(), small](const error_code& error, size_t size) {
    self->reading_ = false;
    if (self->phase_ != Phase::closed) self->on_read(error, {small ? self->small_.data() : self->large_.data(), size});
  });
}

// If a client has closed its sending side, the connection cannot tell whether the client still reads, and treats it as
// gone. But a response that is already being sent is completed.
void Connection::on_read(const error_code& error, std::string_view bytes) {
  if (error) {
    input_ended_ = true;
    if (phase_ != Phase::responding && (phase_ != Phase::awaiting_piece || has_no_length())) close();
    return;
  }
  if (phase_ == Phase::draining) return read_more();
  input_ += bytes;
  if (phase_ == Phase::idle || phase_ == Phase::reading) return parse_input();
  read_more();
}

void Connection::send(std::string text) {
  if (output_.empty()) {
    output_ = std::move(text);  // a large answer is not copied
  } else {
    output_ += text;
  }
  write_more();
}

void Connection::write_more() {
  if (writing_) return;
  writing_ = true;
  const auto rest = asio::buffer(output_) + written_;
  // The write needs a copy of the bytes: before it ends, send() may append to output_ and so move the bytes.
  const auto piece = std::make_shared<const std::string>(static_cast<const char*>(rest.data()),
                                                         std::min(rest.size(), kBytesPerDeadline));
  pipe_->write_some(asio::buffer(*piece), [self = shared_from_this(), piece](const error_code& error, size_t size) {
    self->writing_ = false;
    if (self->phase_ != Phase::closed) self->on_written(error, size);
  });
}

void Connection::on_written(const error_code& error, size_t size) {
  if (error) return close();
  written_ += size;
  since_deadline_ += size;
  if (written_ < output_.size()) {
    if (since_deadline_ >= kBytesPerDeadline) {
      set_deadline(service_->options.read_seconds);
      since_deadline_ = 0;
    }
    return write_more();
  }
  release(output_);  // an idle connection keeps no buffers
  written_ = 0;
  if (phase_ != Phase::responding) return;
  source_ ? request_piece() : end_response();
}

void Connection::set_deadline(double seconds) {
  timer_.expires_after(to_duration(seconds));
  timer_.async_wait([self = shared_from_this(), deadline = ++deadline_](const error_code& error) {
    if (!error && self->deadline_ == deadline && self->phase_ != Phase::closed) self->on_deadline();
  });
}

// A client that has sent the whole header but not the whole body gets 408. A client that waits for the handler's answer
// gets 504; if the handler has more time, it gets "100 Continue" instead, and the wait goes on. The connections of all
// other clients are closed.
void Connection::on_deadline() {
  if (phase_ == Phase::reading && reader_->has_header()) return refuse_slow_body();
  if (phase_ != Phase::awaiting_answer) return close();
  if (seconds_left_ > 0) {
    send(std::string(kContinue));
    return wait_for_answer();
  }
  abandon();
  respond(error_response(504, "HTTP_ANSWER_TIMEOUT", "the server had no answer in time", "try again"));
}

void Connection::refuse_slow_body() {
  refuse(error_response(408, "HTTP_REQUEST_TIMEOUT", "the request's body did not arrive in time",
                        "send faster: the server limits the time for each " + std::to_string(kBytesPerDeadline >> 10) +
                            " KiB, and for a whole body"));
}

}  // namespace sinew::http
