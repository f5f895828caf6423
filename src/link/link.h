// Links carry frames between the members of a group, over connections that report when they break.
//
// group/ uses this room and defines the meaning of a frame. There are two implementations with one conformance suite:
// in memory (tests, simulation, one process) and TCP. Frames arrive whole, unchanged and in order until the connection
// is lost. The loss is reported once; nothing is sent again. No call blocks on the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/key_pair.h"
#include "base/resource_use.h"

namespace sinew::link {

// An allocator that does not clear memory, because payloads are large and are written only once.
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
  int64_t part = 0;                      // the number of a slice or of a chunk, as the sender defines it
  std::shared_ptr<const Bytes> payload;  // may be null; shared, so that one result goes to many peers without a copy
};

struct Peer {
  MemberId id;
  std::string address;  // what Links::address() of this peer returned
};

// The links call these functions on a thread of their own, one at a time. The functions must return soon; they may call
// send().
struct Events {
  std::function<void(MemberId from, Frame frame)> on_frame = nullptr;
  // The connection to a wanted peer broke, or could not be made in time. `why` is a message: "connection reset by
  // 127.0.0.1:4711". No frame of this peer arrives afterwards.
  std::function<void(MemberId peer, std::string why)> on_lost = nullptr;
};

// One member's connections to the others.
class Links {
 public:
  virtual ~Links() = default;               // closes all connections; no event runs afterwards
  virtual std::string address() const = 0;  // the address at which other members reach this one
  // Sets this member's id. Call it once, before connect(). Before this call no peer is accepted.
  virtual void set_identity(MemberId me) = 0;
  // Sets the wanted peers; this member is not one of them. Closes connections to other members without a report, and
  // connects to the wanted peers. Of two members, the one with the higher id dials. Frames to a peer that is not
  // connected yet wait in a queue.
  virtual void connect(const std::vector<Peer>& peers) = 0;
  // Queues the frame. Drops it if the peer is lost or not wanted. Any thread may call it.
  virtual void send(MemberId to, Frame frame) = 0;
  // Returns how many bytes for this peer are queued and not yet taken by the network. A sender of large data waits
  // until the number falls.
  virtual size_t queued_bytes(MemberId to) const = 0;
  // Returns the bytes of the frames that the network has taken and delivered so far, of all peers. What keeps a
  // connection alive does not count. Any thread.
  virtual NetworkUse traffic() const = 0;
};

// ---- in memory -----------------------------------------------------------------------------------------------------

// Connects members of one process. It must outlive its Links.
class MemoryNetwork {
 public:
  MemoryNetwork();
  ~MemoryNetwork();
  std::unique_ptr<Links> join(Events events);
  // Simulates the death of the member's process: the member sends and receives nothing more, and the others lose it.
  void kill(MemberId member);
  // Simulates a cut of the cable between two members.
  void cut(MemberId a, MemberId b);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// ---- TCP -----------------------------------------------------------------------------------------------------------

struct TcpOptions {
  std::string listen = "127.0.0.1";  // address to listen on, at a free port
  std::string advertise;             // a host name or address that other members can reach; empty: `listen`
  std::string job;                   // the name of the job; it must be the same on both ends
  // This member's key, its certificate and the key that signs all certificates of the run. Both ends prove by
  // signatures over random numbers of both ends that they have the keys in their certificates. `certificate` is called
  // once, by set_identity().
  MemberCredentials credentials;
  bool tls = false;            // all bytes go through TLS, which proves the listener's key; both ends must set it
  double connect_seconds = 5;  // limit for connecting and the handshake; after it the peer is lost
  double silence_seconds = 4;  // silence after which a connection is lost; links send a pulse at least every second
  size_t max_payload_bytes = size_t{1} << 30;
};

// docs/formats/link.md describes the frames on the wire. A wrong checksum or an invalid header closes the connection. A
// process that does not finish the handshake within connect_seconds is disconnected. The number of unfinished
// handshakes is limited, so strangers cannot keep members out. Throws Error if it cannot listen (LINK_CANNOT_LISTEN),
// or if an option makes no sense (LINK_BAD_OPTIONS).
std::unique_ptr<Links> tcp_links(const TcpOptions& options, Events events);

}  // namespace sinew::link
