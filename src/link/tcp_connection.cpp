#include "link/tcp_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>
#include <cmath>
#include <utility>

namespace sinew::link {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr double kLeastBytesPerSecond = 16 << 10;  // the lowest allowed rate within a frame

}  // namespace

std::string broken_by(const error_code& code, const std::string& where) {
  if (code == asio::error::eof || code == asio::ssl::error::stream_truncated) return "connection closed by " + where;
  if (code == asio::error::connection_reset || code == asio::error::broken_pipe) return "connection reset by " + where;
  if (code == asio::error::connection_refused) return "connection refused by " + where;
  return "connection with " + where + ": " + code.message();
}

Connection::Connection(std::unique_ptr<Stream> stream, MemberId peer, int64_t incarnation, std::string where,
                       size_t max_payload_bytes, ConnectionOwner& owner)
    : stream_(std::move(stream)),
      peer_(peer),
      incarnation_(incarnation),
      where_(std::move(where)),
      owner_(owner),
      reader_(max_payload_bytes) {}

void Connection::start() {
  reading_ = true;
  silent_ = 0;
  read();
  write();
}

void Connection::read() {
  const std::span<std::byte> room = reader_.room();
  stream_->async_read_some(asio::buffer(room.data(), room.size()),
                           [self = shared_from_this()](const error_code& code, size_t count) {
                             if (self->closed_) return;
                             if (code) return self->break_off(broken_by(code, self->where_));
                             self->silent_ = 0;
                             self->trickled_ += count;
                             std::vector<Frame> frames;
                             const auto taken = self->reader_.took(count, frames);
                             for (Frame& frame : frames) {
                               if (!self->owner_.arrived(*self, std::move(frame)) || self->closed_) return;
                             }
                             if (!taken) return self->break_off(taken.error() + " from " + self->where_);
                             self->read();
                           });
}

void Connection::write() {
  if (busy_ || mute_ || closed_) return;
  std::vector<Outgoing> batch;
  if (reading_) batch = owner_.take(*this);
  size_t owned_bytes = 0;
  for (const Outgoing& frame : batch) owned_bytes += frame.bytes();
  if (!batch.empty()) write_now(std::move(batch), owned_bytes);
}

// Writes headers and payloads directly from their buffers, without copying them.
void Connection::write_now(std::vector<Outgoing> batch, size_t owned_bytes) {
  busy_ = true;
  unpulsed_ = 0;
  writing_ = std::move(batch);
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(2 * writing_.size());
  for (Outgoing& frame : writing_) {
    number(frame, written_++);
    buffers.emplace_back(frame.header.data(), frame.header.size());
    if (frame.payload) buffers.emplace_back(frame.payload->data(), frame.payload->size());
  }
  asio::async_write(*stream_, buffers, [self = shared_from_this(), owned_bytes](const error_code& code, size_t) {
    self->busy_ = false;
    self->writing_.clear();
    if (self->closed_) return;
    if (code == asio::error::connection_reset || code == asio::error::broken_pipe) {
      // the peer's last bytes may still be unread in the socket; read() finds their end and reports the loss
      self->mute_ = true;
    } else if (code) {
      self->break_off(broken_by(code, self->where_));
    } else {
      if (owned_bytes > 0) self->owner_.wrote(*self, owned_bytes);
      self->write();
    }
  });
}

void Connection::tick(double elapsed, double pulse_seconds, double silence_seconds) {
  if (closed_) return;
  unpulsed_ += elapsed;
  if (unpulsed_ >= pulse_seconds && !busy_ && !mute_) write_now({seal_pulse()}, 0);
  if (!reading_) return;
  silent_ += elapsed;
  if (silent_ >= silence_seconds) return break_off("no sign of life from " + where_);
  look_for_trickle(elapsed, silence_seconds);
}

// Detects a peer that sends only a few bytes now and then: it is not silent, but it makes the group wait.
void Connection::look_for_trickle(double elapsed, double silence_seconds) {
  unfinished_ = std::max(0.0, unfinished_ + (reader_.between_frames() ? -elapsed : elapsed));
  if (unfinished_ == 0) trickled_ = 0;
  if (unfinished_ < silence_seconds) return;
  if (static_cast<double>(trickled_) < kLeastBytesPerSecond * unfinished_) {
    return break_off("only " + std::to_string(trickled_) + " bytes in " + std::to_string(std::lround(unfinished_)) +
                     " s from " + where_);
  }
  unfinished_ = 0;
  trickled_ = 0;
}

void Connection::break_off(std::string why) {
  const auto self = shared_from_this();
  close();
  owner_.broke(*this, std::move(why));
}

// Reads the unread bytes before it closes the socket. Otherwise the close would reset the connection and drop bytes
// that are still going out.
void Connection::close() {
  if (std::exchange(closed_, true)) return;
  error_code ignored;
  asio::ip::tcp::socket& socket = stream_->socket();
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  socket.non_blocking(true, ignored);
  std::array<std::byte, 4096> rest;
  for (int i = 0; i < 256; ++i) {
    error_code code;
    socket.read_some(asio::buffer(rest), code);
    if (code) break;
  }
  socket.close(ignored);
}

}  // namespace sinew::link
