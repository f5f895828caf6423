// Implements the links between simulated members with the guarantees of link.h: the frames of a link arrive whole and
// in order, and each end reports the loss of a link once. Frames on different links may overtake each other.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "link/link.h"
#include "world.h"

namespace sinew::sim {

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  std::unique_ptr<link::Links> join(const Process& process, link::Events events);
  // Called when the process of the member with this address has died, or was suspended. Its peers notice this later.
  void died(const std::string& address);
  void stopped(const std::string& address);
  // Holds every frame from `from` to `to` for `seconds`. Then delivers the held frames of connections that still exist.
  void cut(const std::string& from, const std::string& to, double seconds);
  void reset(const std::string& a, const std::string& b);

 private:
  friend class SimulatedLinks;
  struct End {  // a member's end of the connection with one peer that it wants
    std::string address;
    enum class Is { waiting, standing, lost } is = Is::waiting;
    std::deque<link::Frame> queue = {};  // frames sent before the connection exists
    int64_t number = 0;                  // the number of this connection
    double last_arrival = 0;             // when the last frame to this member arrives; no later frame arrives earlier
  };
  struct Node {
    std::string address;
    const Process& process;
    link::Events events;
    std::optional<MemberId> me = std::nullopt;
    bool gone = false;
    std::map<MemberId, End> ends = {};
  };

  Node* at(const std::string& address);
  Node* of(MemberId id);
  bool is_cut(const Node& from, const Node& to) const { return cuts_.contains({from.address, to.address}); }
  double latency();
  void connect(Node& node, const std::vector<link::Peer>& peers);
  void send(Node& node, MemberId to, link::Frame frame);
  void meet(Node& node, MemberId peer);
  void stand(Node& a, Node& b);
  void transmit(Node& from, Node& to, Event arrival);
  void lose(Node& node, MemberId peer, const std::string& why);
  void hang_up(Node& node, MemberId peer, const std::string& why);
  void lose_if_silent(const std::string& from, const std::string& to, int64_t cut);
  void leave(Node& node, const std::string& why);

  World& world_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::pair<std::string, std::string>, int64_t> cuts_;  // (from, to) -> the number of the cut
  std::map<std::pair<std::string, std::string>, std::vector<Event>> held_;
  int64_t numbers_ = 0;
};

}  // namespace sinew::sim
