// Inside http/: tracks the connections of a server, and decides which of them yields when there are too many.
//
// A connection is a stranger until its client has proved to be known (Response::known_client). Above a limit, a new
// connection replaces the oldest stranger. So idle strangers cannot keep other clients out: a new client can send its
// first request before strangers have opened as many connections as the limit allows. One thread at a time may use a
// Guests object; Service guards its own with its mutex.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sinew::http {

class Connection;

class Guests {
 public:
  Guests(size_t max, size_t max_of_address)
      : max_(max), max_of_address_(max_of_address == 0 ? max : max_of_address), max_known_(max - max / 8) {}

  // Decides about a new connection from the address. `replaced` is the stranger that must yield to it, or null. The
  // replaced connection still counts until remove(), but is not chosen a second time.
  struct Verdict {
    bool accepted = false;
    Connection* replaced = nullptr;
  };
  Verdict judge(const std::string& address);
  void add(Connection* connection, const std::string& address);
  // Marks the client as known. Returns false if too many clients are known; then the connection stays a stranger.
  bool make_known(Connection* connection);
  void remove(Connection* connection);

  size_t count() const { return guests_.size(); }
  template <typename Take>
  void each(const Take& take) const {
    for (const auto& [connection, guest] : guests_) take(connection);
  }

 private:
  using ByAge = std::map<uint64_t, Connection*>;
  struct Guest {
    uint64_t number = 0;
    std::string address;
    bool known = false;
  };
  void forget_stranger(const Guest& guest);

  const size_t max_, max_of_address_, max_known_;
  uint64_t next_ = 0;
  size_t known_ = 0;
  std::map<Connection*, Guest> guests_;
  ByAge strangers_;  // oldest first
  std::map<std::string, ByAge> of_address_;
};

}  // namespace sinew::http
