#include "http/guests.h"

namespace sinew::http {

Guests::Verdict Guests::judge(const std::string& address) {
  // The limit has a reserve: connections that yield need a moment to close, and a connection that waits for its answer
  // does not yield.
  const size_t most = max_ + max_ / 8 + (max_ > 8 ? 8 : 0);
  const auto same = of_address_.find(address);
  Connection* oldest = nullptr;
  if (same != of_address_.end() && same->second.size() >= max_of_address_) {
    oldest = same->second.begin()->second;
  } else if (guests_.size() < max_) {
    return {true, nullptr};
  } else if (!strangers_.empty()) {
    oldest = strangers_.begin()->second;
  }
  if (oldest == nullptr || guests_.size() > most) return {};
  forget_stranger(guests_.at(oldest));
  return {true, oldest};
}

void Guests::add(Connection* connection, const std::string& address) {
  const uint64_t number = next_++;
  guests_[connection] = {number, address, false};
  strangers_[number] = connection;
  of_address_[address][number] = connection;
}

bool Guests::make_known(Connection* connection) {
  const auto found = guests_.find(connection);
  if (found == guests_.end()) return false;
  if (found->second.known) return true;
  if (known_ >= max_known_) return false;
  forget_stranger(found->second);
  found->second.known = true;
  ++known_;
  return true;
}

void Guests::remove(Connection* connection) {
  const auto found = guests_.find(connection);
  if (found == guests_.end()) return;
  forget_stranger(found->second);
  if (found->second.known) --known_;
  guests_.erase(found);
}

void Guests::forget_stranger(const Guest& guest) {
  strangers_.erase(guest.number);
  const auto same = of_address_.find(guest.address);
  if (same == of_address_.end()) return;
  same->second.erase(guest.number);
  if (same->second.empty()) of_address_.erase(same);
}

}  // namespace sinew::http
