// Links carry frames between the members of a group, over connections that report when they break.
//
// group/ uses this room. There are two implementations with one conformance suite: in memory (tests, simulation, one
// process) and TCP. Either a frame arrives whole, unchanged and in order, or the connection is reported lost, once.
// Nothing is sent again. The room above defines the meaning of a frame. No call blocks on the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace sinew::link {

// An allocator that does not clear memory: payloads are large and written once.
template <typename T>
struct Uncleared : std::allocator<T> {
  template <typename Other>
  struct rebind {                    // NOLINT(readability-identifier-naming): the library's names
    using other = Uncleared<Other>;  // NOLINT(readability-identifier-naming)
  };
  template <typename U, typename... Given>
  void construct(U* place, Given&&... given) {
    if constexpr (sizeof...(Given) == 0) {
      ::new (static_cast<void*>(place)) U;
    } else {
      ::new (static_cast<void*>(place)) U(std::forward<Given>(given)...);
    }
  }
};
using Bytes = std::vector<std::byte, Uncleared<std::byte>>;  // resize() does not clear new bytes

struct Frame {
  uint16_t kind = 0;
  Generation generation;
  int64_t collective = 0;
  int64_t part = 0;                      // the number of a slice or of a chunk, as the sender's room defines it
  std::shared_ptr<const Bytes> payload;  // may be null; shared, so that one result goes to many peers without a copy
};

struct Peer {
  MemberId id;
  std::string address;  // the address that Links::address() of that peer returned
};

// The links call these functions on their own threads, one at a time. The functions must return soon; they may call
// send().
struct Events {
  std::function<void(MemberId from, Frame frame)> on_frame = nullptr;
  // The connection to a wanted peer broke, or could not be made within connect_seconds. `why` is a message:
  // "connection reset by 127.0.0.1:4711". No frame of that peer arrives afterwards.
  std::function<void(MemberId peer, std::string why)> on_lost = nullptr;
};

// One member's connections to the others.
class Links {
 public:
  virtual ~Links() = default;               // closes all connections; no event runs afterwards
  virtual std::string address() const = 0;  // the address at which other members reach this one
  // Sets this member's id. Call it once, before connect. Until then no peer is accepted.
  virtual void set_identity(MemberId me) = 0;
  // Sets the wanted peers (never this member): connections to others are closed without a report, and missing ones are
  // made. Of two members, the one with the higher id dials. Frames to a peer that is not connected yet wait in its
  // queue.
  virtual void connect(const std::vector<Peer>& peers) = 0;
  // Queues the frame; drops it if the peer is lost or not wanted. Any thread.
  virtual void send(MemberId to, Frame frame) = 0;
  // Returns the number of bytes that are queued for a peer and that the network has not taken yet. A sender of large
  // data waits until the number falls.
  virtual size_t queued_bytes(MemberId to) const = 0;
};

// ---- in memory -----------------------------------------------------------------------------------------------------

// Connects members of one process. It must outlive its Links.
class MemoryNetwork {
 public:
  MemoryNetwork();
  ~MemoryNetwork();
  std::unique_ptr<Links> join(Events events);
  // Acts as if the member's process died: its frames stop, and the others lose their links to it.
  void kill(MemberId member);
  // Acts as if the cable between two members were cut.
  void cut(MemberId a, MemberId b);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// ---- TCP -----------------------------------------------------------------------------------------------------------

struct TcpOptions {
  std::string listen = "127.0.0.1";  // address to listen on, at a free port
  std::string advertise;             // host name for other members; empty: the listening address
  std::string job;                   // the name of the job; it must be the same on both ends
  std::string
      secret;  // must be the same on both ends; the handshake proves it by HMAC-SHA256 over random numbers of both
  bool tls = false;            // all bytes inside TLS with keys from the secret; both ends must set it
  double connect_seconds = 5;  // limit for connecting and the handshake; then the peer is lost
  double silence_seconds = 4;  // a connection without a byte for so long is lost; links send a pulse every second
  size_t max_payload_bytes = size_t{1} << 30;
};

// docs/formats/link.md describes the frames on the wire. A wrong checksum or an invalid header closes the connection.
// Foreign processes are refused within connect_seconds. They never slow the group down, because the number of
// unfinished handshakes is limited. Throws Error (LINK_CANNOT_LISTEN, LINK_BAD_OPTIONS).
std::unique_ptr<Links> tcp_links(const TcpOptions& options, Events events);

}  // namespace sinew::link
