// Inside http/: parses and writes URLs and request targets. Pure; accepts any bytes.
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
  std::string host;  // an IPv6 address without its brackets
  uint16_t port = 0;
};

// Parses "http://host:port" or "https://…". Only a single "/" may follow. Without a port, the scheme's default applies.
// The error is the end of a message, such as "has no host".
std::expected<Url, std::string> parse_url(std::string_view text);

// Returns host and port in the form of URLs, Host headers and messages: "127.0.0.1:80" or "[::1]:80".
std::string authority(std::string_view host, uint16_t port);
bool is_ip_address(const std::string& host);

struct Target {
  std::string path;                                               // begins with '/', or is "*"
  std::map<std::string, std::string> query;                       // a name without '=' has an empty value
  std::map<std::string, std::vector<std::string>> repeated = {};  // the values of a repeated name after its first value
};

// Parses the text between method and version. Refuses an invalid percent sequence, and a zero byte in the path.
std::expected<Target, std::string> parse_target(std::string_view text);

// Returns nullopt if a '%' is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

// Returns whether a request line may contain the text between "GET " and " HTTP/1.1".
bool is_sendable_target(std::string_view text);

}  // namespace sinew::http
