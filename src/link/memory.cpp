// Implements links between members of one process as queues, for tests and simulations of the code above.
//
// One mutex guards the whole network. It is fast enough, because there are few members and a frame is only a pointer.
// Each member has a thread for its events. The network breaks as a real one does. If a member dies, the frames that it
// has sent still arrive before on_lost. If a link is cut, the frames on it do not arrive.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/check.h"
#include "link/link.h"

namespace sinew::link {
namespace {

using Time = std::chrono::steady_clock::time_point;
constexpr auto kPatience = std::chrono::seconds(30);  // how long a member waits for a peer that does not want it yet
constexpr size_t kFrameBytes = 48;                    // what a frame without payload counts in queued_bytes

size_t bytes_of(const Frame& frame) {
  return kFrameBytes + (frame.payload ? frame.payload->size() : 0);
}

// A member's state for one wanted peer.
struct CableEnd {
  std::string address;
  Time deadline;  // a peer that is not connected by this time is lost
  enum class Is { waiting, standing, lost } is = Is::waiting;
  std::deque<Frame> queue = {};  // frames that wait for the connection
  size_t queued = 0;             // bytes in the queue
};

struct Arrival {
  MemberId from;
  std::optional<Frame> frame;  // nullopt if the event is a loss
  std::string why;
};

struct Node {
  std::string address;
  Events events;
  std::optional<MemberId> me = std::nullopt;
  bool gone = false;  // closed or killed: no more events for this member
  std::map<MemberId, CableEnd> ends = {};
  std::deque<Arrival> inbox = {};
  std::map<MemberId, size_t> unread = {};  // bytes in the inbox, by sender
  NetworkUse traffic = {};
  std::condition_variable changed = {};

  CableEnd* end(MemberId peer) {
    const auto found = ends.find(peer);
    return found == ends.end() ? nullptr : &found->second;
  }
  void deliver(MemberId from, Frame frame) {
    unread[from] += bytes_of(frame);
    inbox.push_back({from, std::move(frame), ""});
    changed.notify_all();
  }
  void forget_arrivals(MemberId from) {
    std::erase_if(inbox, [&](const Arrival& arrival) { return arrival.from == from; });
    unread.erase(from);
  }
  void lose(MemberId peer, std::string why) {
    CableEnd* const lost = end(peer);
    if (gone || lost == nullptr || lost->is == CableEnd::Is::lost) return;
    *lost = {lost->address, {}, CableEnd::Is::lost};
    inbox.push_back({peer, std::nullopt, std::move(why)});
    changed.notify_all();
  }
  // Reports peers that did not connect in time.
  void lose_late(Time now) {
    for (auto& [peer, waiting] : ends) {
      if (waiting.is == CableEnd::Is::waiting && waiting.deadline <= now) {
        lose(peer, "no connection with " + waiting.address + " in time");
      }
    }
  }
  std::optional<Time> next_deadline() const {
    std::optional<Time> next;
    for (const auto& [peer, waiting] : ends) {
      if (waiting.is == CableEnd::Is::waiting) next = std::min(next.value_or(waiting.deadline), waiting.deadline);
    }
    return next;
  }
};

// The network itself.
struct Cables {
  std::mutex mutex;  // guards everything, nodes included
  std::map<std::string, Node*> addresses;
  std::map<MemberId, Node*> members;
  std::set<MemberId> departed;
  std::set<std::pair<MemberId, MemberId>> cuts;  // the lower id first
  int64_t joined = 0;

  // Connects two members if both want each other. Reports the peer as lost if they cannot be connected.
  void settle(Node& node, MemberId peer) {
    CableEnd* const here = node.end(peer);
    if (node.gone || here == nullptr || here->is != CableEnd::Is::waiting) return;
    if (departed.contains(peer)) return node.lose(peer, here->address + " is gone");
    if (cuts.contains(std::minmax(*node.me, peer))) return node.lose(peer, "no way to " + here->address);
    const bool dials = *node.me > peer;
    const auto listener = addresses.find(here->address);
    if (dials && listener == addresses.end()) return node.lose(peer, "nobody listens at " + here->address);
    if (dials && listener->second->me && *listener->second->me != peer) {
      return node.lose(peer, "another member listens at " + here->address);
    }
    const auto found = members.find(peer);
    if (found == members.end()) return;
    CableEnd* const there = found->second->end(*node.me);
    if (there == nullptr) return;
    if (there->is == CableEnd::Is::lost) return node.lose(peer, here->address + " has given this member up");
    stand(node, *here, *found->second, *there);
  }

  void pass(Node& from, Node& to, Frame frame) {
    const auto bytes = static_cast<int64_t>(bytes_of(frame));
    from.traffic.sent_bytes += bytes;
    to.traffic.received_bytes += bytes;
    to.deliver(*from.me, std::move(frame));
  }

  void stand(Node& a, CableEnd& to_b, Node& b, CableEnd& to_a) {
    to_b.is = to_a.is = CableEnd::Is::standing;
    for (Frame& frame : to_b.queue) pass(a, b, std::move(frame));
    for (Frame& frame : to_a.queue) pass(b, a, std::move(frame));
    to_b.queue.clear();
    to_a.queue.clear();
    to_b.queued = to_a.queued = 0;
  }

  // Makes the member unreachable. Other members still receive the frames that it has sent.
  void depart(Node& node, const std::string& why) {
    if (node.gone) return;
    node.gone = true;
    node.inbox.clear();
    node.changed.notify_all();
    addresses.erase(node.address);
    if (!node.me) return;
    members.erase(*node.me);
    departed.insert(*node.me);
    for (const auto& [address, other] : addresses) other->lose(*node.me, why + node.address);
  }

  void drop(Node& node, MemberId peer) {
    const bool stood = node.end(peer)->is == CableEnd::Is::standing;
    node.ends.erase(peer);
    node.forget_arrivals(peer);
    const auto found = members.find(peer);
    if (stood && found != members.end()) found->second->lose(*node.me, "connection closed by " + node.address);
  }
};

class MemoryLinks final : public Links {
 public:
  MemoryLinks(std::shared_ptr<Cables> cables, Events events)
      : cables_(std::move(cables)), node_{.address = "", .events = std::move(events)} {
    SINEW_CHECK(node_.events.on_frame && node_.events.on_lost);
    const std::lock_guard lock(cables_->mutex);
    node_.address = "memory:" + std::to_string(++cables_->joined);
    cables_->addresses[node_.address] = &node_;
    thread_ = std::thread([this] { run(); });
  }
  ~MemoryLinks() override {
    SINEW_CHECK(std::this_thread::get_id() != thread_.get_id());
    {
      const std::lock_guard lock(cables_->mutex);
      cables_->depart(node_, "connection closed by ");
    }
    thread_.join();
  }

  std::string address() const override { return node_.address; }

  void set_identity(MemberId me) override {
    const std::lock_guard lock(cables_->mutex);
    SINEW_CHECK(!node_.me && !cables_->members.contains(me) && !cables_->departed.contains(me), me);
    node_.me = me;
    if (!node_.gone) cables_->members[me] = &node_;
    for (const auto& [address, other] : cables_->addresses) cables_->settle(*other, me);
  }

  void connect(const std::vector<Peer>& peers) override {
    const std::lock_guard lock(cables_->mutex);
    SINEW_CHECK(node_.me.has_value());
    std::map<MemberId, std::string> wanted;
    for (const Peer& peer : peers) wanted[peer.id] = peer.address;
    SINEW_CHECK(!wanted.contains(*node_.me), *node_.me);
    if (node_.gone) return;
    std::vector<MemberId> unwanted;
    for (const auto& [peer, end] : node_.ends) {
      if (!wanted.contains(peer)) unwanted.push_back(peer);
    }
    for (const MemberId peer : unwanted) cables_->drop(node_, peer);
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    for (const auto& [peer, address] : wanted) {
      if (!node_.ends.try_emplace(peer, address, deadline).second) continue;
      cables_->settle(node_, peer);
    }
    node_.changed.notify_all();
  }

  void send(MemberId to, Frame frame) override {
    const std::lock_guard lock(cables_->mutex);
    CableEnd* const end = node_.end(to);
    if (node_.gone || end == nullptr || end->is == CableEnd::Is::lost) return;
    if (end->is == CableEnd::Is::standing) return cables_->pass(node_, *cables_->members.at(to), std::move(frame));
    end->queued += bytes_of(frame);
    end->queue.push_back(std::move(frame));
  }

  // Also counts the frames that the receiver has not handled yet, so that a slow receiver slows its senders down.
  size_t queued_bytes(MemberId to) const override {
    const std::lock_guard lock(cables_->mutex);
    const auto end = node_.ends.find(to);
    if (node_.gone || end == node_.ends.end()) return 0;
    if (end->second.is != CableEnd::Is::standing) return end->second.queued;
    const auto& unread = cables_->members.at(to)->unread;
    const auto found = unread.find(*node_.me);
    return found == unread.end() ? 0 : found->second;
  }

  NetworkUse traffic() const override {
    const std::lock_guard lock(cables_->mutex);
    return node_.traffic;
  }

 private:
  void run() {
    std::unique_lock lock(cables_->mutex);
    while (!node_.gone) {
      node_.lose_late(std::chrono::steady_clock::now());
      if (!node_.inbox.empty()) {
        call(lock);
      } else if (const auto deadline = node_.next_deadline()) {
        node_.changed.wait_until(lock, *deadline);
      } else {
        node_.changed.wait(lock);
      }
    }
  }
  void call(std::unique_lock<std::mutex>& lock) {
    Arrival arrival = std::move(node_.inbox.front());
    node_.inbox.pop_front();
    if (arrival.frame) node_.unread[arrival.from] -= bytes_of(*arrival.frame);
    lock.unlock();
    if (arrival.frame) {
      node_.events.on_frame(arrival.from, std::move(*arrival.frame));
    } else {
      node_.events.on_lost(arrival.from, std::move(arrival.why));
    }
    lock.lock();
  }

  const std::shared_ptr<Cables> cables_;
  Node node_;
  std::thread thread_;
};

}  // namespace

struct MemoryNetwork::State : Cables {};

MemoryNetwork::MemoryNetwork() : state_(std::make_shared<State>()) {}
MemoryNetwork::~MemoryNetwork() = default;

std::unique_ptr<Links> MemoryNetwork::join(Events events) {
  return std::make_unique<MemoryLinks>(state_, std::move(events));
}

void MemoryNetwork::kill(MemberId member) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->members.find(member);
  if (found != state_->members.end()) state_->depart(*found->second, "connection reset by ");
}

void MemoryNetwork::cut(MemberId a, MemberId b) {
  const std::lock_guard lock(state_->mutex);
  state_->cuts.insert(std::minmax(a, b));
  const auto lose = [&](MemberId here, MemberId there) {
    const auto found = state_->members.find(here);
    if (found == state_->members.end()) return;
    CableEnd* const end = found->second->end(there);
    if (end == nullptr || end->is == CableEnd::Is::lost) return;
    found->second->forget_arrivals(there);
    found->second->lose(there, "the cable to " + end->address + " is cut");
  };
  lose(a, b);
  lose(b, a);
}

}  // namespace sinew::link
