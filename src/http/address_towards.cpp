#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "http/http.h"
#include "http/url.h"

namespace sinew::http {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const Url& url) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  const int code = ::getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &list);
  return {code == 0 ? list : nullptr, &::freeaddrinfo};
}

// Returns this machine's address on the route to `there`, or "". Connecting a datagram socket sends nothing; the kernel
// only chooses a route.
std::string own_address(const addrinfo& there) {
  const int descriptor = ::socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return "";
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool known = ::connect(descriptor, there.ai_addr, there.ai_addrlen) == 0 &&
                     ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  ::close(descriptor);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int code = known ? ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text.data(), text.size(), nullptr,
                                         0, NI_NUMERICHOST)
                         : EAI_FAIL;
  return code == 0 ? text.data() : "";
}

}  // namespace

std::string address_towards(const std::string& url) {
  const auto parsed = parse_url(url);
  if (!parsed) return "";
  const Addresses found = resolve(*parsed);
  for (const addrinfo* there = found.get(); there != nullptr; there = there->ai_next) {
    if (std::string address = own_address(*there); !address.empty()) return address;
  }
  return "";
}

}  // namespace sinew::http
