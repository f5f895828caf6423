// Converts addresses between HostPort and "host:port", and checks TcpOptions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "link/link.h"

namespace sinew::link {

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

std::string to_text(const HostPort& address);                // writes an IPv6 address in brackets
std::optional<HostPort> host_port(const std::string& text);  // inverse of to_text; nullopt if it is not an address

TcpOptions checked(const TcpOptions& options);  // throws Error

}  // namespace sinew::link
