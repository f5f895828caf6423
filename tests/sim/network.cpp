#include "network.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::sim {
namespace {

constexpr double kSilenceSeconds = 4, kConnectSeconds = 5;  // as in link::TcpOptions

}  // namespace

class SimulatedLinks final : public link::Links {
 public:
  SimulatedLinks(Network& network, Network::Node& node) : network_(network), node_(node) {}
  ~SimulatedLinks() override { network_.leave(node_, "connection closed by "); }
  std::string address() const override { return node_.address; }
  void set_identity(MemberId me) override { node_.me = me; }
  void connect(const std::vector<link::Peer>& peers) override { network_.connect(node_, peers); }
  void send(MemberId to, link::Frame frame) override { network_.send(node_, to, std::move(frame)); }
  size_t queued_bytes(MemberId) const override { return 0; }
  NetworkUse traffic() const override { return {}; }  // no story asks for it

 private:
  Network& network_;
  Network::Node& node_;
};

std::unique_ptr<link::Links> Network::join(const Process& process, link::Events events) {
  const std::string address = "sim:" + std::to_string(nodes_.size() + 1);
  nodes_.push_back(std::make_unique<Node>(Node{address, process, std::move(events)}));
  return std::make_unique<SimulatedLinks>(*this, *nodes_.back());
}

Network::Node* Network::at(const std::string& address) {
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& node) { return node->address == address; });
  return found == nodes_.end() ? nullptr : found->get();
}

Network::Node* Network::of(MemberId id) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& node) { return node->me == id; });
  return found == nodes_.end() ? nullptr : found->get();
}

// Returns 0.05 to 2 ms, or fifty times as much in 3 % of the calls.
double Network::latency() {
  const double seconds = world_.random.uniform(0.00005, 0.002);
  return world_.chance(0.03) ? seconds * 50 : seconds;
}

// ---- connecting ----------------------------------------------------------------------------------------------------

void Network::connect(Node& node, const std::vector<link::Peer>& peers) {
  if (node.gone) return;
  std::map<MemberId, std::string> wanted;
  for (const link::Peer& peer : peers) wanted[peer.id] = peer.address;
  std::vector<MemberId> unwanted;
  for (const auto& [peer, end] : node.ends) {
    if (!wanted.contains(peer)) unwanted.push_back(peer);
  }
  for (const MemberId peer : unwanted) {
    hang_up(node, peer, "connection closed by " + node.address);
    node.ends.erase(peer);
  }
  for (const auto& [peer, address] : wanted) {
    const auto [end, added] = node.ends.try_emplace(peer, End{.address = address});
    if (!added) continue;
    end->second.number = ++numbers_;
    const auto number = end->second.number;
    world_.after(latency(), [this, &node, id = peer] { meet(node, id); });
    node.process.after(kConnectSeconds, [this, &node, id = peer, number] {
      const auto found = node.ends.find(id);
      if (found == node.ends.end() || found->second.number != number || found->second.is != End::Is::waiting) return;
      lose(node, id, "no connection with " + found->second.address + " in time");
    });
  }
}

// Connects two members if both want the connection and neither direction between them is cut. Reports a loss if the
// other member has ended or has lost this connection. In all other cases meet() is called again: when the other member
// wants the connection, too, or when the cut ends.
void Network::meet(Node& node, MemberId peer) {
  const auto here = node.ends.find(peer);
  if (node.gone || here == node.ends.end() || here->second.is != End::Is::waiting) return;
  Node* other = at(here->second.address);
  SINEW_CHECK(other != nullptr, here->second.address);
  if (is_cut(node, *other) || is_cut(*other, node)) return;
  if (other->gone) return lose(node, peer, "nobody listens at " + other->address);
  const auto there = other->ends.find(*node.me);
  if (there == other->ends.end()) return;
  if (there->second.is == End::Is::lost) return lose(node, peer, other->address + " has given this member up");
  if (there->second.is == End::Is::waiting) stand(node, *other);
}

void Network::stand(Node& a, Node& b) {
  End& to_b = a.ends.at(*b.me);
  End& to_a = b.ends.at(*a.me);
  to_b.is = to_a.is = End::Is::standing;
  to_b.number = to_a.number = ++numbers_;
  to_b.last_arrival = to_a.last_arrival = world_.now();
  for (link::Frame& frame : std::exchange(to_b.queue, {})) send(a, *b.me, std::move(frame));
  for (link::Frame& frame : std::exchange(to_a.queue, {})) send(b, *a.me, std::move(frame));
}

// ---- frames --------------------------------------------------------------------------------------------------------

void Network::send(Node& node, MemberId to, link::Frame frame) {
  const auto found = node.ends.find(to);
  if (node.gone || found == node.ends.end() || found->second.is == End::Is::lost) return;
  if (found->second.is == End::Is::waiting) return found->second.queue.push_back(std::move(frame));
  Node& other = *of(to);
  transmit(node, other, [&other, from = *node.me, frame = std::move(frame)] { other.events.on_frame(from, frame); });
}

// Runs `arrival` at `to` after all earlier frames of the current connection have arrived. Holds it while this direction
// is cut, and drops it if the connection ends before.
void Network::transmit(Node& from, Node& to, Event arrival) {
  const auto back = to.ends.find(*from.me);
  if (to.gone || back == to.ends.end() || back->second.is != End::Is::standing) return;
  if (is_cut(from, to)) {
    held_[{from.address, to.address}].push_back(
        [this, &from, &to, arrival = std::move(arrival)] { transmit(from, to, arrival); });
    return;
  }
  End& end = back->second;
  end.last_arrival = std::max(end.last_arrival, world_.now() + latency());
  to.process.after(end.last_arrival - world_.now(), [&to, id = *from.me, number = end.number, arrival] {
    const auto found = to.ends.find(id);
    if (!to.gone && found != to.ends.end() && found->second.number == number && found->second.is == End::Is::standing)
      arrival();
  });
}

// ---- the end of a connection ---------------------------------------------------------------------------------------

void Network::lose(Node& node, MemberId peer, const std::string& why) {
  const auto end = node.ends.find(peer);
  if (node.gone || end == node.ends.end() || end->second.is == End::Is::lost) return;
  hang_up(node, peer, "connection reset by " + node.address);
  end->second.is = End::Is::lost;
  end->second.queue.clear();
  node.process.after(0, [&node, peer, why] {
    if (!node.gone && node.ends.contains(peer)) node.events.on_lost(peer, why);
  });
}

// Notifies the peer, after all earlier frames, that `node` has closed the connection. A cut delays the notice.
void Network::hang_up(Node& node, MemberId peer, const std::string& why) {
  const auto end = node.ends.find(peer);
  if (end->second.is != End::Is::standing) return;
  Node& other = *of(peer);
  transmit(node, other, [this, &other, me = *node.me, why] { lose(other, me, why); });
}

void Network::leave(Node& node, const std::string& why) {
  if (node.gone) return;
  for (const auto& [peer, end] : node.ends) hang_up(node, peer, why + node.address);
  node.gone = true;
  if (!node.me) return;
  for (const auto& other : nodes_) {  // members that wait for a connection to this one learn that it is gone
    if (other->gone || other->ends.empty() || !other->ends.contains(*node.me)) continue;
    world_.after(latency(), [this, &waiting = *other, me = *node.me] { meet(waiting, me); });
  }
}

void Network::died(const std::string& address) {
  leave(*at(address), "connection reset by ");
}

// The operating system keeps the connections of a suspended process open, so its peers notice only the silence.
void Network::stopped(const std::string& address) {
  Node& node = *at(address);
  world_.after(kSilenceSeconds, [this, &node] {
    if (!node.process.stopped() || !node.me) return;
    for (const auto& other : nodes_) {
      if (other->ends.contains(*node.me) && other->ends.at(*node.me).is == End::Is::standing)
        lose(*other, *node.me, "no byte from " + node.address + " for 4 s");
    }
  });
}

void Network::reset(const std::string& a, const std::string& b) {
  Node &one = *at(a), &two = *at(b);
  if (!one.me || !two.me || !one.ends.contains(*two.me)) return;
  lose(one, *two.me, "connection reset");
}

void Network::cut(const std::string& from, const std::string& to, double seconds) {
  const int64_t number = ++numbers_;
  cuts_[{from, to}] = number;
  world_.after(kSilenceSeconds, [this, from, to, number] { lose_if_silent(from, to, number); });
  world_.after(seconds, [this, from, to, number] {
    const auto found = cuts_.find({from, to});
    if (found == cuts_.end() || found->second != number) return;
    cuts_.erase(found);
    for (const Event& arrival : std::exchange(held_[{from, to}], {})) arrival();
    for (const auto& [here, there] : {std::pair(at(from), at(to)), std::pair(at(to), at(from))}) {
      if (there->me) meet(*here, *there->me);
    }
  });
}

void Network::lose_if_silent(const std::string& from, const std::string& to, int64_t cut) {
  const auto found = cuts_.find({from, to});
  if (found == cuts_.end() || found->second != cut) return;
  Node &sender = *at(from), &receiver = *at(to);
  const auto end = sender.me ? receiver.ends.find(*sender.me) : receiver.ends.end();
  if (end != receiver.ends.end() && end->second.is == End::Is::standing)
    lose(receiver, *sender.me, "no byte from " + from + " for 4 s");
}

}  // namespace sinew::sim
