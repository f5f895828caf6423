// What the callers of TCP links and their network thread share: for each wanted peer, how far the connection is and
// what waits to be written. Any thread.
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

// One naming of a peer. A peer that is dropped and named anew gets another life: what still happens to the old
// connection does not touch the new one.
struct End {
  MemberId peer;
  int64_t life = 0;
  std::string address;
};

class Ends {
 public:
  void set_me(MemberId me);
  std::optional<MemberId> me() const;

  // ---- the callers' side
  // Exactly these are wanted from now on; the new ones have to stand by `deadline`.
  void name(const std::vector<Peer>& peers, Time deadline);
  bool wants(MemberId peer) const;  // and has not lost it
  // True: the network thread is to be told that there is something to write.
  bool push(MemberId to, Outgoing frame);
  size_t queued_bytes(MemberId to) const;

  // ---- the network thread's side
  std::vector<End> begin_new();                     // named since the last call
  std::optional<End> waiting(MemberId peer) const;  // wanted, and does not stand yet
  bool stands(MemberId peer, int64_t life) const;
  bool waits(MemberId peer, int64_t life) const;
  bool given_up(MemberId peer) const;                       // lost, and still named
  bool stand(MemberId peer, int64_t life);                  // false: it does not wait any more
  std::vector<Outgoing> take(MemberId peer, int64_t life);  // a batch for one write
  void wrote(MemberId peer, int64_t life, size_t bytes);
  bool lose(MemberId peer, int64_t life);  // true: to be reported
  std::vector<End> late(Time now) const;   // those that wait for too long

 private:
  struct Shared {
    End end;
    Time deadline;
    enum class Is { waiting, standing, lost } is = Is::waiting;
    bool begun = false, woken = false;  // woken: the network thread has been told and has not looked yet
    std::deque<Outgoing> queue = {};
    size_t queued = 0;  // bytes in the queue, or taken and not yet written
  };
  const Shared* find(MemberId peer) const;
  Shared* find(MemberId peer, int64_t life);

  mutable std::mutex mutex_;
  std::optional<MemberId> me_;
  std::map<MemberId, Shared> ends_;
  int64_t lives_ = 0;
};

}  // namespace sinew::link
