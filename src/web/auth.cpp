#include "web/auth.h"

#include <arpa/inet.h>

#include <algorithm>
#include <exception>

#include "web/context.h"

namespace sinew::web {
namespace {

constexpr double kLookAgainSeconds = 1;  // a token that is taken away is of no use a second later
constexpr double kStrangersPerSecond = 20;

std::string base64_decoded(std::string_view text) {
  std::string bytes;
  unsigned bits = 0;
  int have = 0;
  for (const char c : text) {
    const size_t value = std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(value);
    if ((have += 6) >= 8) bytes += static_cast<char>(bits >> (have -= 8) & 0xff);
  }
  return bytes;
}

bool begins_with_word(std::string_view text, std::string_view word) {
  if (text.size() <= word.size() || text[word.size()] != ' ') return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if ((text[i] | 0x20) != word[i]) return false;
  }
  return true;
}

std::string secret_of(const http::Request& request) {
  const auto header = request.headers.find("authorization");
  if (header == request.headers.end()) return "";
  const std::string_view text = header->second;
  if (begins_with_word(text, "bearer")) return std::string(text.substr(7));
  if (!begins_with_word(text, "basic")) return "";
  const std::string pair = base64_decoded(text.substr(6));
  const size_t colon = pair.find(':');
  return colon == std::string::npos ? "" : pair.substr(colon + 1);
}

// A Host header with this machine's own name or address, and a port or none. A name that only begins like the address
// is anybody's to let lead here.
bool names_this_machine(const std::string& host) {
  const size_t end = host.starts_with("[::1]") ? 5 : std::min(host.find(':'), host.size());
  if (end < host.size() && host[end] != ':') return false;
  const std::string bare = host.substr(0, end);
  in_addr address{};
  const bool is_address = ::inet_pton(AF_INET, bare.c_str(), &address) == 1;
  return bare == "localhost" || bare == "[::1]" || (is_address && ntohl(address.s_addr) >> 24 == 127);
}

std::string header_of(const http::Request& request, const char* name) {
  const auto header = request.headers.find(name);
  return header == request.headers.end() ? "" : header->second;
}

// A browser says from which site a page asks; no program else does.
bool is_of_another_site(const http::Request& request) {
  const std::string host = header_of(request, "host"), origin = header_of(request, "origin");
  const bool same = origin.empty() || origin == "http://" + host || origin == "https://" + host;
  return !same || header_of(request, "sec-fetch-site") == "cross-site";
}

// A browser sends a token that its user once typed as a password along with whatever any page asks. A page of another
// site can not read the answer, so to look is left to it; to act is not.
void judge_site(const http::Request& request) {
  if (request.method == "GET" || request.method == "HEAD" || !is_of_another_site(request)) return;
  throw Refused(403, "PERMISSION_DENIED", "a page of another site may not act here",
                "send the request from a program, or from a page of this address");
}

// Where everybody on this machine may do everything, a page in a browser still may not: neither by another name for
// this address, nor by asking from another site.
void judge_local(const http::Request& request) {
  if (names_this_machine(header_of(request, "host")) && !is_of_another_site(request)) return;
  throw Refused(403, "PERMISSION_DENIED", "without tokens this server is for programs of its own machine",
                "ask for it as localhost, or start it without --no-auth");
}

}  // namespace

Auth::Auth(const Options& options)
    : options_(options),
      allowance_(options.requests_per_second),
      strangers_(options.requests_per_second > 0 ? kStrangersPerSecond : 0) {
  if (!options.tokens.empty()) tokens_ = read_tokens(options.tokens);
}

// A file that can not be read now leaves the tokens as they were.
void Auth::look_at_file() {
  const double now = options_.clock->monotonic_seconds();
  if (options_.tokens.empty() || now - looked_at_ < kLookAgainSeconds) return;
  looked_at_ = now;
  try {
    tokens_ = read_tokens(options_.tokens);
  } catch (const std::exception&) {
  }
}

Visitor Auth::visitor(const http::Request& request) {
  if (options_.tokens.empty()) {
    judge_local(request);
    return {Role::kAdmin, "anybody"};
  }
  judge_site(request);
  const std::string secret = secret_of(request);
  if (secret.empty()) return {};
  const std::lock_guard lock(mutex_);
  look_at_file();
  const Token* token = find_token(tokens_, secret);
  return token == nullptr ? Visitor{} : Visitor{token->role, token->name};
}

bool Auth::still_may(const http::Request& request, Role role) {
  try {
    return visitor(request).role >= role;
  } catch (const Refused&) {
    return false;
  }
}

double Auth::wait_seconds(const http::Request& request, const Visitor& visitor) {
  const double now = options_.clock->monotonic_seconds();
  const std::lock_guard lock(mutex_);
  if (visitor.role == Role::kNobody) return strangers_.take(request.peer, now);
  return allowance_.take(visitor.who, now);
}

}  // namespace sinew::web
