#include "link/tcp_address.h"

#include <charconv>

#include "base/error.h"

namespace sinew::link {

std::string to_text(const HostPort& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::optional<HostPort> host_port(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  HostPort address{text.substr(0, colon), 0};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, address.port);
  if (parsed.ec != std::errc() || parsed.ptr != end || address.port == 0) return std::nullopt;
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  return address;
}

TcpOptions checked(const TcpOptions& options) {
  if (!options.credentials.certificate) {
    throw Error("LINK_BAD_OPTIONS", "links over TCP need a certificate", "the run's coordinator gives it to a member");
  }
  if (options.advertise.empty() && (options.listen == "0.0.0.0" || options.listen == "::")) {
    throw Error("LINK_BAD_OPTIONS", "other members cannot call the address '" + options.listen + "'",
                "set SINEW_LINK_ADVERTISE to the name or address by which they reach this machine");
  }
  if (!(options.connect_seconds > 0) || !(options.silence_seconds > 0)) {
    throw Error("LINK_BAD_OPTIONS", "connect_seconds and silence_seconds of links must be above 0",
                "use the defaults, 5 and 4");
  }
  return options;
}

}  // namespace sinew::link
