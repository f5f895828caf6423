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

constexpr size_t kMostWaitingBytes = 64 << 10;  // of further requests, while one is being answered
constexpr size_t kBytesPerDeadline = 64 << 10;  // of an answer, taken within read_seconds
constexpr double kDrainSeconds = 2;
constexpr size_t kLargeRead = 64 << 10;
constexpr double kSlowestDisk = 8 << 20;  // bytes a second, of what a sink took
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// Something a connection waits for, given at most once, from any thread; shared by all copies of the function that
// gives it. When the last copy goes without having given it, the connection is told so by `Dropped`.
template <typename What, auto Take, What (*Dropped)()>
class Ticket {
 public:
  Ticket(std::shared_ptr<asio::io_context> context, const std::shared_ptr<Connection>& connection, uint64_t number)
      : context_(std::move(context)), executor_(connection->executor()), connection_(connection), number_(number) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (given_) return;
    try {
      give(Dropped());
    } catch (const std::exception&) {
      // No memory: the deadline of the answer comes to the same.
    }
  }

  void give(What what) {
    if (given_.exchange(true)) return;
    // The weak pointer: what is posted to a context that nobody runs any more must not hold a connection.
    asio::post(executor_, [connection = connection_, number = number_, what = std::move(what)]() mutable {
      if (const auto held = connection.lock()) std::invoke(Take, *held, number, std::move(what));
    });
  }

 private:
  const std::shared_ptr<asio::io_context> context_;  // first: destroyed last
  const asio::any_io_executor executor_;
  const std::weak_ptr<Connection> connection_;
  const uint64_t number_;
  std::atomic<bool> given_ = false;
};

Response no_answer() {
  return error_response(500, "the server dropped this request without an answer");
}
using AnswerTicket = Ticket<Response, &Connection::answer, no_answer>;

using Piece = std::optional<std::string>;
Piece no_piece() {
  return std::nullopt;
}
using PieceTicket = Ticket<Piece, &Connection::take_piece, no_piece>;

// An empty text in its place would leave it its memory.
void let_go(std::string& text) {
  std::string().swap(text);
}

std::string chunk_of(const std::string& piece) {
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
  return size + piece + "\r\n";
}

Response response_to(const std::exception& exception) {
  const auto* error = dynamic_cast<const Error*>(&exception);
  return error_response(500, exception.what(), error == nullptr ? "" : error->hint);
}

}  // namespace

size_t Service::count() {
  const std::lock_guard lock(mutex);
  return connections.size();
}

std::vector<std::shared_ptr<Connection>> Service::all() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<Connection>> held;
  for (Connection* connection : connections) {
    if (auto strong = connection->weak_from_this().lock()) held.push_back(std::move(strong));
  }
  return held;
}

Connection::Connection(std::unique_ptr<Pipe> pipe, std::shared_ptr<Service> service)
    : pipe_(std::move(pipe)), service_(std::move(service)), timer_(pipe_->socket().get_executor()) {
  const std::lock_guard lock(service_->mutex);
  service_->connections.insert(this);
}

Connection::~Connection() {
  const std::lock_guard lock(service_->mutex);
  service_->connections.erase(this);
  service_->left.notify_all();
}

void Connection::start() {
  error_code unknown;
  const auto endpoint = pipe_->socket().remote_endpoint(unknown);
  if (!unknown) peer_ = endpoint.address().to_string();
  set_deadline(service_->options.read_seconds);
  pipe_->handshake([self = shared_from_this()](const error_code& error, size_t) {
    if (self->phase_ == Phase::closed) return;
    if (!error) return self->wait_for_request();
    if (spoke_http(error)) self->tell_of_tls();
    self->close();
  });
}

// In clear, as it was asked; a new connection's buffer takes it at once.
void Connection::tell_of_tls() {
  error_code ignored;
  pipe_->socket().non_blocking(true, ignored);
  const Response refusal = error_response(400, "this server speaks TLS", "its address begins with https://");
  pipe_->socket().write_some(asio::buffer(response_text(refusal, false, false)), ignored);
  pipe_->socket().shutdown(tcp::socket::shutdown_send, ignored);
}

void Connection::wait_for_request() {
  phase_ = Phase::idle;
  set_deadline(service_->options.idle_seconds);
  advance();
}

// What was read goes into the request under way.
void Connection::advance() {
  if (!input_.empty()) {
    if (phase_ == Phase::idle) {
      phase_ = Phase::reading;
      set_deadline(service_->options.read_seconds);  // for the whole of it: a trickle does not keep it open
      reader_.emplace(service_->options.max_header_bytes, service_->options.max_body_bytes, &service_->gate, peer_);
      received_ = body_bytes_ = 0;
    }
    const size_t before = input_.size();
    const Reading reading = reader_->feed(input_);
    received_ += before - input_.size();
    body_bytes_ += before - input_.size();
    if (reading == Reading::done) return hand_on();
    if (reading == Reading::refused) return refuse(reader_->refusal());
    if (reader_->wants_continue()) send(kContinue);
    if (received_ >= kBytesPerDeadline) {  // more than any header: a body that comes
      set_deadline(service_->options.read_seconds);
      received_ = 0;
    }
  }
  if (input_ended_) return close();
  read_more();
}

// Before its end: what still comes of it is not looked at.
void Connection::refuse(const Response& refusal) {
  keep_alive_ = head_only_ = false;
  refused_ = true;
  respond(refusal);
}

void Connection::hand_on() {
  phase_ = Phase::answering;
  keep_alive_ = reader_->keep_alive();
  head_only_ = reader_->head_only();
  chunked_ = reader_->chunks_allowed();
  const Request request = reader_->take();
  reader_.reset();
  // A connection that waits keeps no memory. Of the large one no read is under way: another begins only in a later
  // phase.
  large_ = std::vector<char>();
  if (input_.empty()) let_go(input_);
  patience_ = service_->options.answer_seconds;
  if (request.sink) patience_ += static_cast<double>(body_bytes_) / kSlowestDisk;
  tells_ = request.sink != nullptr && chunked_;
  wait_for_answer();
  {
    const auto ticket = std::make_shared<AnswerTicket>(service_->context, shared_from_this(), ++number_);
    try {
      service_->handler(request, [ticket](Response response) { ticket->give(std::move(response)); });
    } catch (const std::exception& exception) {
      ticket->give(response_to(exception));
    } catch (...) {
      ticket->give(error_response(500, "the server failed, and did not say why"));
    }
  }
  // An answer given inside the handler is on its way already, before whatever is done from here on.
  if (!input_ended_) return read_more();
  asio::post(executor(), [self = shared_from_this(), number = number_] {
    if (self->phase_ == Phase::answering && self->number_ == number) self->close();
  });
}

// What went into a sink is large, and may take long to be put away: so long as its size warrants it the client is told,
// now and then, that it is being worked on (HTTP/1.0 has no words for that).
void Connection::wait_for_answer() {
  const double seconds = tells_ ? std::min(patience_, service_->options.answer_seconds / 4) : patience_;
  patience_ -= seconds;
  set_deadline(seconds);
}

void Connection::answer(uint64_t number, const Response& response) {
  if (phase_ == Phase::answering && number_ == number) respond(response);
}

void Connection::respond(const Response& response) {
  phase_ = Phase::responding;
  set_deadline(service_->options.read_seconds);
  since_deadline_ = 0;
  if (wants_source(response, head_only_)) {
    source_ = response.source;
    if_ended_ = response.if_ended;
    bytes_left_ = response.source_bytes;
    chunked_ = chunked_ && endless();
    if (endless() && !chunked_) keep_alive_ = false;  // its end is the connection's
  }
  send(response_text(response, keep_alive_, head_only_, chunked_));
}

void Connection::ask_for_piece() {
  phase_ = Phase::asking;
  if (bytes_left_ == 0) return take_piece(++piece_number_, "");
  if (endless() && finishing_) return take_piece(++piece_number_, std::exchange(if_ended_, ""));
  if (endless() && input_ended_) return close();
  set_deadline(service_->options.answer_seconds);
  const auto ticket = std::make_shared<PieceTicket>(service_->context, shared_from_this(), ++piece_number_);
  try {
    source_([ticket](std::string piece) { ticket->give(std::move(piece)); });
  } catch (...) {
    return ticket->give(std::nullopt);  // the header is gone: all that can still be told is that this is not the whole
  }
  read_more();
}

void Connection::take_piece(uint64_t number, std::optional<std::string> piece) {
  if (phase_ != Phase::asking || number != piece_number_) return;
  if (!piece || (bytes_left_ && (piece->size() > *bytes_left_ || (piece->empty() && *bytes_left_ > 0)))) return close();
  phase_ = Phase::responding;
  set_deadline(service_->options.read_seconds);
  since_deadline_ = 0;
  if (piece->empty()) {
    source_ = nullptr;
    return chunked_ ? send("0\r\n\r\n") : end_response();
  }
  if (bytes_left_) *bytes_left_ -= piece->size();
  let_go(if_ended_);
  send(chunked_ ? chunk_of(*piece) : *piece);
}

void Connection::end_response() {
  if (keep_alive_) return wait_for_request();
  refused_ ? drain() : close();
}

// A body with a length may come to its end, within the server's farewell, and so may an answer that is awaited; a body
// without a length ends here.
void Connection::finish() {
  keep_alive_ = false;
  finishing_ = true;
  if (phase_ == Phase::asking && endless()) return take_piece(piece_number_, std::exchange(if_ended_, ""));
  if (phase_ == Phase::answering && service_->options.await_answers) return;
  if (phase_ != Phase::responding && phase_ != Phase::asking) close();
}

// A request was refused before its end. To close while its rest comes in would reset the connection, and the client
// might never see why it was refused.
void Connection::drain() {
  if (input_ended_) return close();
  phase_ = Phase::draining;
  let_go(input_);
  error_code ignored;
  pipe_->socket().shutdown(tcp::socket::shutdown_send, ignored);
  set_deadline(std::min(service_->options.read_seconds, kDrainSeconds));
  read_more();
}

void Connection::close() {
  phase_ = Phase::closed;
  source_ = nullptr;
  timer_.cancel();
  error_code ignored;
  pipe_->socket().close(ignored);
}

void Connection::read_more() {
  if (reading_ || input_ended_) return;
  if (phase_ != Phase::draining && input_.size() >= kMostWaitingBytes) return;
  reading_ = true;
  // The large one lives while a request is being read: never while another phase's read is under way.
  const bool small = phase_ != Phase::reading && phase_ != Phase::draining;
  if (!small && large_.empty()) large_.resize(kLargeRead);
  const auto into = small ? asio::buffer(small_) : asio::buffer(large_);
  pipe_->read_some(into, [self = shared_from_this(), small](const error_code& error, size_t size) {
    self->reading_ = false;
    if (self->phase_ != Phase::closed) self->on_read(error, {small ? self->small_.data() : self->large_.data(), size});
  });
}

// A client that sends no more has left: whether it would still listen can not be told. Only an answer that is there
// already is still sent.
void Connection::on_read(const error_code& error, std::string_view bytes) {
  if (error) {
    input_ended_ = true;
    if (phase_ != Phase::responding && (phase_ != Phase::asking || endless())) close();
    return;
  }
  if (phase_ == Phase::draining) return read_more();
  input_ += bytes;
  if (phase_ == Phase::idle || phase_ == Phase::reading) return advance();
  read_more();
}

void Connection::send(std::string_view text) {
  output_ += text;
  write_more();
}

void Connection::write_more() {
  if (writing_) return;
  writing_ = true;
  const auto rest = asio::buffer(output_) + written_;
  // A copy of the string's place would not do: send() may append, and so move, while this is under way.
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
  let_go(output_);  // an idle connection keeps no memory
  written_ = 0;
  if (phase_ != Phase::responding) return;
  source_ ? ask_for_piece() : end_response();
}

void Connection::set_deadline(double seconds) {
  timer_.expires_after(wait_of(seconds));
  timer_.async_wait([self = shared_from_this(), deadline = ++deadline_](const error_code& error) {
    if (!error && self->deadline_ == deadline && self->phase_ != Phase::closed) self->on_deadline();
  });
}

// Where the header is there, its sender can be told why nothing comes of it. Who sends nothing at all is no request.
void Connection::on_deadline() {
  if (phase_ == Phase::reading && reader_->has_header()) {
    return refuse(error_response(408, "the request did not come in time",
                                 "send it faster, or less at a time: the next " +
                                     std::to_string(kBytesPerDeadline >> 10) + " KiB are waited for"));
  }
  if (phase_ != Phase::answering) return close();
  if (patience_ > 0) {
    send(kContinue);
    return wait_for_answer();
  }
  respond(error_response(504, "the server had no answer in time", "try again"));
}

}  // namespace sinew::http
