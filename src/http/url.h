// The text of addresses: where a client connects to, and what of a server a request is for. Pure; takes any bytes.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::http {

struct Url {
  bool tls = false;
  std::string host;  // an IPv6 address stands without its brackets
  uint16_t port = 0;
};

// "http://host:port" or "https://…", nothing behind it but one "/". Without a port the scheme's own. The error is the
// end of a sentence: "has no host".
std::expected<Url, std::string> parse_url(std::string_view text);

// "127.0.0.1:80", "[::1]:80": as it stands in a URL, a Host header and messages.
std::string authority(std::string_view host, uint16_t port);
bool is_ip_address(const std::string& host);

struct Target {
  std::string path;                                               // begins with '/', or is "*"
  std::map<std::string, std::string> query;                       // a name without '=' has an empty value
  std::map<std::string, std::vector<std::string>> repeated = {};  // further values of a name given more than once
};

// What stands between method and version. A broken %-sequence and a zero byte in the path are errors, not guesses.
std::expected<Target, std::string> parse_target(std::string_view text);

// None: a '%' without two hexadecimal digits behind it.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank);

// Safe to put on the wire between "GET " and " HTTP/1.1".
bool is_sendable_target(std::string_view text);

}  // namespace sinew::http
