#include "http/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace sinew::http {
namespace {

constexpr size_t kLongestHost = 253;

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_ipv4(const std::string& host) {
  in_addr address{};
  return host.find('\0') == std::string::npos && ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  return host.find('\0') == std::string::npos && ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// Returns whether the text is a host name as in DNS and /etc/hosts. A name of digits and dots must be a complete IPv4
// address, because the system's resolver also takes "127.1" and "1" for addresses.
bool is_host_name(const std::string& host) {
  if (host.empty() || host.size() > kLongestHost) return false;
  if (!std::all_of(host.begin(), host.end(),
                   [](char c) { return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_'; })) {
    return false;
  }
  if (host.front() == '.' || host.front() == '-' || host.find("..") != std::string::npos) return false;
  return host.find_first_not_of("0123456789.") != std::string::npos || is_ipv4(host);
}

std::expected<uint16_t, std::string> parse_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || text.size() > 5 || port == 0 || port > 65535) {
    return std::unexpected("has a port that is not a number from 1 to 65535");
  }
  return static_cast<uint16_t>(port);
}

}  // namespace

bool is_ip_address(const std::string& host) {
  return is_ipv4(host) || is_ipv6(host);
}

std::string authority(std::string_view host, uint16_t port) {
  const bool brackets = host.find(':') != std::string_view::npos;
  return (brackets ? "[" + std::string(host) + "]" : std::string(host)) + ":" + std::to_string(port);
}

std::expected<Url, std::string> parse_url(std::string_view text) {
  Url url;
  if (text.starts_with("https://")) {
    url.tls = true;
  } else if (!text.starts_with("http://")) {
    return std::unexpected("does not begin with http:// or https://");
  }
  text.remove_prefix(url.tls ? 8 : 7);
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.find_first_of("/?#") != std::string_view::npos) return std::unexpected("has more than a host and a port");
  if (text.find('@') != std::string_view::npos) return std::unexpected("contains a user name");

  size_t end = text.find(':');
  if (text.starts_with('[')) {
    const size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return std::unexpected("has a '[' without a ']'");
    url.host = text.substr(1, bracket - 1);
    if (!is_ipv6(url.host)) return std::unexpected("has no valid IPv6 address between its brackets");
    end = bracket + 1;
  } else {
    url.host = text.substr(0, end);
    if (url.host.empty()) return std::unexpected("has no host");
    if (!is_host_name(url.host)) return std::unexpected("has an invalid host");
  }
  const std::string_view rest = text.substr(std::min(end, text.size()));
  url.port = url.tls ? 443 : 80;
  if (rest.empty()) return url;
  if (rest.front() != ':') return std::unexpected("has something between ']' and the port");
  const auto port = parse_port(rest.substr(1));
  if (!port) return std::unexpected(port.error());
  url.port = *port;
  return url;
}

std::string percent_encode(std::string_view text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[at] != '%') {
      decoded += text[at];
    } else {
      if (text.size() - at < 3) return std::nullopt;
      const int high = hex_digit(text[at + 1]), low = hex_digit(text[at + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      at += 2;
    }
  }
  return decoded;
}

bool is_sendable_target(std::string_view text) {
  if (text != "*" && !text.starts_with('/')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
}

std::expected<Target, std::string> parse_target(std::string_view text) {
  // A request to a proxy contains the server's name. Servers must accept this form, too.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    text.remove_prefix(scheme.size());
    text.remove_prefix(std::min(text.find('/'), text.size()));
  }
  if (text != "*" && !text.starts_with('/')) return std::unexpected("the target does not begin with '/'");
  if (text.find('#') != std::string_view::npos) return std::unexpected("the target contains a '#'");

  const size_t mark = text.find('?');
  auto path = percent_decode(text.substr(0, mark), false);
  if (!path) return std::unexpected("the path has a '%' without two hexadecimal digits");
  if (path->find('\0') != std::string::npos) return std::unexpected("the path contains a zero byte");
  Target target{std::move(*path), {}, {}};
  std::string_view rest = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    auto name = percent_decode(part.substr(0, equals), true);
    auto value = percent_decode(equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1), true);
    if (!name || !value) return std::unexpected("the query has a '%' without two hexadecimal digits");
    const auto [at, fresh] = target.query.try_emplace(*name, *value);
    if (!fresh) target.repeated[*name].push_back(std::move(*value));
  }
  return target;
}

}  // namespace sinew::http
