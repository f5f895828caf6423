// Bytes between the members of a group: frames over connections that say when they break.
//
// For group/. Two implementations, one conformance suite: in memory (tests, simulation, one process) and TCP. A frame
// sent to a peer arrives whole, unchanged and in order, or the connection is reported lost, once; there is no third
// outcome and nothing is sent again. What a frame means belongs to the room above. No call blocks on the network.
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

// Memory that is not cleared before it is first written: payloads are large, and written once.
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
using Bytes = std::vector<std::byte, Uncleared<std::byte>>;  // resize() leaves what is new as it was found

struct Frame {
  uint16_t kind = 0;
  Generation generation;
  int64_t collective = 0;
  int64_t part = 0;                      // a slice, a chunk
  std::shared_ptr<const Bytes> payload;  // null: none; shared, so that one root goes to many without copies
};

struct Peer {
  MemberId id;
  std::string address;  // as its Links::address() said
};

// Both are called on the link's own threads, one call at a time, and must return soon; they may call send().
struct Events {
  std::function<void(MemberId from, Frame frame)> on_frame = nullptr;
  // The connection to a peer that was wanted is gone or could not be had within the options' bound. `why` is a
  // sentence: "connection reset by 127.0.0.1:4711". After this nothing more arrives from that life of the peer.
  std::function<void(MemberId peer, std::string why)> on_lost = nullptr;
};

// One member's connections to the others.
class Links {
 public:
  virtual ~Links() = default;               // closes all; no event is under way or comes afterwards
  virtual std::string address() const = 0;  // where others reach this member
  // Who this member is; once, before connect. Until then nobody is let in.
  virtual void set_identity(MemberId me) = 0;
  // From now on exactly these peers are wanted (never `me`): connections to others are closed without a report, missing
  // ones are made. Of two members the one with the higher id dials. Frames to a peer not connected yet wait in its
  // queue.
  virtual void connect(const std::vector<Peer>& peers) = 0;
  // Queues the frame. To a peer that is not wanted or lost it is dropped. Any thread.
  virtual void send(MemberId to, Frame frame) = 0;
  // Bytes queued for a peer and not yet taken by the network: what a sender of bulk waits for.
  virtual size_t queued_bytes(MemberId to) const = 0;
};

// ---- in memory -----------------------------------------------------------------------------------------------------

// Members of one process that reach each other through it. Outlives its Links.
class MemoryNetwork {
 public:
  MemoryNetwork();
  ~MemoryNetwork();
  std::unique_ptr<Links> join(Events events);
  // As if the process of that member died: its frames stop, the others' links to it are lost.
  void kill(MemberId member);
  // As if the cable between two were cut.
  void cut(MemberId a, MemberId b);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// ---- TCP -----------------------------------------------------------------------------------------------------------

struct TcpOptions {
  std::string listen = "127.0.0.1";  // address to listen on, a free port
  std::string advertise;             // host others reach this member by; empty: the listening address
  std::string job;                   // both ends must name the same
  std::string secret;                // both ends must know it: handshake by HMAC-SHA256 over both ends' random numbers
  bool tls = false;                  // everything, the handshake too, inside TLS by the secret; both ends must want it
  double connect_seconds = 5;        // to connect and shake hands; then the peer is lost
  double silence_seconds = 4;        // a connection with no byte (links send a pulse each second) is lost
  size_t max_payload_bytes = size_t{1} << 30;
};

// Frames on the wire: docs/formats/link.md (length, header, CRC-32C of header and payload). A frame whose checksum is
// wrong, or whose header is senseless, closes the connection. Foreign processes are turned away within connect_seconds
// and never slow the group: a bounded number of unfinished handshakes is kept. Throws Error when it can not listen.
std::unique_ptr<Links> tcp_links(const TcpOptions& options, Events events);

}  // namespace sinew::link
