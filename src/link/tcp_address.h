// "host:port", and options that make sense.
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

std::string to_text(const HostPort& address);                // an IPv6 address in brackets
std::optional<HostPort> host_port(const std::string& text);  // what to_text made; nullopt: it is none

TcpOptions checked(const TcpOptions& options);  // throws Error

}  // namespace sinew::link
