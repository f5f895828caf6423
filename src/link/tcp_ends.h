// Holds what the threads that call TCP links share with the network thread: for each wanted peer, the state of its
// connection and the frames to write. Any thread may use it.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "link/wire.h"

namespace sinew::link {

using Time = std::chrono::steady_clock::time_point;

// A wanted peer. If a peer is dropped and then wanted again, it gets another `incarnation`. So late events of the old
// connection do not affect the new one.
struct End {
  MemberId peer;
  int64_t incarnation = 0;
  std::string address;
};

class Ends {
 public:
  void set_me(MemberId me);
  std::optional<MemberId> me() const;

  // ---- the callers' side
  // Replaces the wanted peers. Peers that are new must be connected by `deadline`.
  void name(const std::vector<Peer>& peers, Time deadline);
  bool wants(MemberId peer) const;  // wanted, and not lost
  // Queues the frame. Returns true if the caller must wake the network thread.
  bool push(MemberId to, Outgoing frame);
  size_t queued_bytes(MemberId to) const;

  // ---- the network thread's side
  std::vector<End> begin_new();                     // peers that became wanted since the last call
  std::optional<End> waiting(MemberId peer) const;  // wanted, and not connected yet
  bool stands(MemberId peer, int64_t incarnation) const;
  bool waits(MemberId peer, int64_t incarnation) const;
  bool given_up(MemberId peer) const;              // whether the peer is lost and still wanted
  bool stand(MemberId peer, int64_t incarnation);  // false: the entry does not wait for a connection any more
  std::vector<Outgoing> take(MemberId peer, int64_t incarnation);  // frames for one write
  void wrote(MemberId peer, int64_t incarnation, size_t bytes);
  bool lose(MemberId peer, int64_t incarnation);  // true: the loss must be reported
  std::vector<End> late(Time now) const;          // peers that are not connected and past their deadline

 private:
  struct Shared {
    End end;
    Time deadline;
    enum class Is { waiting, standing, lost } is = Is::waiting;
    // woken: the network thread was woken to write and has not emptied the queue yet
    bool begun = false, woken = false;
    std::deque<Outgoing> queue = {};
    size_t queued = 0;  // bytes that are in the queue, or that take() has returned and that are not written yet
  };
  const Shared* find(MemberId peer) const;
  Shared* find(MemberId peer, int64_t incarnation);

  mutable std::mutex mutex_;
  std::optional<MemberId> me_;
  std::map<MemberId, Shared> ends_;
  int64_t lives_ = 0;
};

}  // namespace sinew::link
