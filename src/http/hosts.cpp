// Parses and changes the host of a URL, and decides whether a host is this machine.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>

#include <array>
#include <memory>

#include "http/http.h"
#include "http/url.h"

namespace sinew::http {
namespace {

std::string without_brackets(const std::string& host) {
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}

// Returns the numeric text of an IPv4 or IPv6 address of an interface, without an IPv6 scope. Returns "" for any other
// family.
std::string text_of(const sockaddr* address) {
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return "";
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  const std::string numbers = text.data();
  return numbers.substr(0, numbers.find('%'));
}

}  // namespace

std::string host_of(const std::string& url) {
  const auto parsed = parse_url(url);
  return parsed ? without_brackets(parsed->host) : "";
}

uint16_t port_of(const std::string& url) {
  const auto parsed = parse_url(url);
  return parsed ? parsed->port : 0;
}

std::string with_host(const std::string& url, const std::string& host) {
  const auto parsed = parse_url(url);
  return parsed ? (parsed->tls ? "https://" : "http://") + authority(without_brackets(host), parsed->port) : url;
}

bool is_loopback(const std::string& host_given) {
  const std::string host = without_brackets(host_given);
  in_addr address{};
  in6_addr wide{};
  if (host == "localhost") return true;
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
  return ::inet_pton(AF_INET6, host.c_str(), &wide) == 1 && IN6_IS_ADDR_LOOPBACK(&wide);
}

bool is_this_machine(const std::string& host_given) {
  const std::string host = without_brackets(host_given);
  if (is_loopback(host) || host == "0.0.0.0" || host == "::") return true;  // the kernel takes these for loopback
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (!host.empty() && text_of(at->ifa_addr) == host) return true;
  }
  return false;
}

}  // namespace sinew::http
