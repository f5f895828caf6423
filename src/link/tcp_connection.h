// Runs one connection after its handshake: sends and receives frames, sends pulses, and detects silence. All of it runs
// on the network thread of the links.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "link/tcp_stream.h"
#include "link/wire.h"

namespace sinew::link {

class Connection;

// The interface through which a connection reaches the links that it belongs to.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // returns the frames to write next, perhaps none
  virtual std::vector<Outgoing> take(const Connection& connection) = 0;
  // the connection has written `bytes` of the frames that take() returned
  virtual void wrote(const Connection& connection, size_t bytes) = 0;
  virtual bool arrived(const Connection& connection, Frame frame) = 0;  // returns false to stop reading
  virtual void broke(const Connection& connection, std::string why) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `incarnation` distinguishes successive connections to the same peer. `where` is the other end's address, for
  // messages.
  Connection(std::unique_ptr<Stream> stream, MemberId peer, int64_t incarnation, std::string where,
             size_t max_payload_bytes, ConnectionOwner& owner);

  MemberId peer() const { return peer_; }
  int64_t incarnation() const { return incarnation_; }
  double silent_seconds() const { return silent_; }
  // Makes a connection that a peer dialled belong to this peer's entry in Ends. Call it before start().
  void belong_to(int64_t incarnation, std::string where) {
    incarnation_ = incarnation;
    where_ = std::move(where);
  }

  void start();  // begins to read and to send frames; before that, the connection only sends pulses
  void write();  // call it when take() may have frames
  // Call it about ten times a second with the seconds since the last call. May report the connection as broken.
  void tick(double elapsed, double pulse_seconds, double silence_seconds);
  // Closes the connection. Bytes that the system has taken are still sent if possible. The owner receives no call
  // afterwards.
  void close();

 private:
  void read();
  void write_now(std::vector<Outgoing> batch, size_t owned_bytes);
  void break_off(std::string why);
  void look_for_trickle(double elapsed, double silence_seconds);

  const std::unique_ptr<Stream> stream_;
  const MemberId peer_;
  int64_t incarnation_;
  std::string where_;
  ConnectionOwner& owner_;
  FrameReader reader_;
  std::vector<Outgoing> writing_;
  uint32_t written_ = 0;              // frames and pulses written; wraps around, as the count of the peer's reader does
  double unpulsed_ = 0, silent_ = 0;  // seconds
  double unfinished_ = 0;             // seconds within a frame, minus seconds between frames; at least 0
  size_t trickled_ = 0;               // bytes received since unfinished_ was 0
  bool reading_ = false, busy_ = false, mute_ = false, closed_ = false;
};

// Returns a message such as "connection reset by 127.0.0.1:4711".
std::string broken_by(const boost::system::error_code& code, const std::string& where);

}  // namespace sinew::link
