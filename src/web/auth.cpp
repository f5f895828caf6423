#include "web/auth.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>

#include "base/lower_case.h"
#include "web/context.h"

namespace sinew::web {
namespace {

constexpr double kReportSeconds = 60;     // the least time between two reports about one address
constexpr size_t kMaxAddresses = 10'000;  // most addresses whose failed logins are counted
constexpr double kUnauthenticatedPerSecond = 20;

// Decodes a base64 text. The padding may be missing. Returns "" if the text is malformed.
std::string base64_decoded(std::string text) {
  while (text.size() % 4 != 0) text += '=';
  const size_t padding = text.size() - (text.find_last_not_of('=') + 1);
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size =
      ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size != static_cast<int>(bytes.size()) || padding > 2) return "";
  bytes.resize(bytes.size() - padding);  // EVP_DecodeBlock decodes the padding to zero bytes
  return bytes;
}

bool begins_with_word(std::string_view text, std::string_view word) {
  return text.size() > word.size() && text[word.size()] == ' ' && lower_case(text.substr(0, word.size())) == word;
}

std::string secret_of(const http::Request& request) {
  const auto header = request.headers.find("authorization");
  if (header == request.headers.end()) return "";
  const std::string_view text = header->second;
  if (begins_with_word(text, "bearer")) return std::string(text.substr(7));
  if (!begins_with_word(text, "basic")) return "";
  const std::string pair = base64_decoded(std::string(text.substr(6)));
  const size_t colon = pair.find(':');
  return colon == std::string::npos ? "" : pair.substr(colon + 1);
}

// Returns whether a Host header names this machine by its loopback name or address, with or without a port. A name such
// as "127.0.0.1.example.com" only begins like an address and may be anyone's DNS name.
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

// Returns whether a web page of another site sent the request. Browsers name the page's site in a header; other
// programs do not.
bool is_cross_site(const http::Request& request) {
  const std::string host = header_of(request, "host"), origin = header_of(request, "origin");
  const bool same = origin.empty() || origin == "http://" + host || origin == "https://" + host;
  return !same || header_of(request, "sec-fetch-site") == "cross-site";
}

// Refuses changes from pages of other sites (cross-site request forgery). Once a user has entered a token as a
// password, the browser adds it to every request to this server, also if another site's page sends the request. Reads
// are harmless, because such a page cannot read the response.
void check_same_site(const http::Request& request) {
  if (request.method == "GET" || request.method == "HEAD" || !is_cross_site(request)) return;
  throw Refused(kForbidden, "a web page of another site may not change anything here",
                "send the request from a program, or from a page of this address");
}

// Checks a request to a server without tokens. Every program of this machine may do everything. A web page of another
// site may do nothing, even if it reaches this server under a DNS name of its own (DNS rebinding).
void check_local(const http::Request& request) {
  if (names_this_machine(header_of(request, "host")) && !is_cross_site(request)) return;
  throw Refused(kForbidden, "without tokens this server serves only programs on its own machine",
                "address it as localhost, or start it without --no-auth");
}

}  // namespace

// Returns a text that changes whenever the token file changes. Each change of the tokens writes a new file; editing the
// file by hand changes its times.
std::string state_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return "none";
  std::string text;
  for (const auto number :
       {static_cast<int64_t>(facts.st_dev), static_cast<int64_t>(facts.st_ino), static_cast<int64_t>(facts.st_size),
        static_cast<int64_t>(facts.st_mtim.tv_sec), static_cast<int64_t>(facts.st_mtim.tv_nsec),
        static_cast<int64_t>(facts.st_ctim.tv_sec), static_cast<int64_t>(facts.st_ctim.tv_nsec)})
    text += std::to_string(number) + ",";
  return text;
}

Auth::Auth(const Options& options)
    : options_(options),
      limiter_(options.requests_per_second),
      unauthenticated_limiter_(options.requests_per_second > 0 ? kUnauthenticatedPerSecond : 0) {
  if (!options.tokens.empty()) tokens_ = std::make_shared<const std::vector<Token>>(read_tokens(options.tokens));
}

// Reads the token file again if it has changed, so that a revoked token stops working at once. If the file cannot be
// read, the tokens stay as they were.
void Auth::reload_tokens() {
  std::string state = state_of(options_.tokens);
  if (state == loaded_) return;
  try {
    tokens_ = std::make_shared<const std::vector<Token>>(read_tokens(options_.tokens));
    loaded_ = std::move(state);
  } catch (const std::exception& error) {
    if (options_.log) options_.log(std::string("the tokens stay as they were: ") + error.what());
    loaded_ = std::move(state);
  }
}

// Reports the first failed login of an address at once, and the number of later ones at most once a minute.
void Auth::report_failed_login(const std::string& address) {
  if (!options_.log) return;
  const double now = options_.clock->monotonic_seconds();
  if (failures_.size() >= kMaxAddresses && !failures_.contains(address))
    std::erase_if(failures_, [&](const auto& entry) { return now - entry.second.reported_at >= kReportSeconds; });
  if (failures_.size() >= kMaxAddresses && !failures_.contains(address)) return;
  const auto [at, is_first] = failures_.try_emplace(address);
  ++at->second.count;
  if (!is_first && now - at->second.reported_at < kReportSeconds) return;
  options_.log("login failed: " + std::to_string(at->second.count) +
               (at->second.count == 1 ? " request" : " requests") + " from " + address + " had no valid token");
  at->second = {0, now};
}

Caller Auth::caller(const http::Request& request) {
  if (options_.tokens.empty()) {
    check_local(request);
    return {Role::kAdmin, kLocalCaller, request.peer};
  }
  check_same_site(request);
  const std::string secret = secret_of(request);
  if (secret.empty()) return {Role::kNone, "", request.peer};
  const std::lock_guard lock(mutex_);
  reload_tokens();
  const auto now_ms = static_cast<int64_t>(options_.clock->wall_seconds() * 1000);
  const Token* token = find_token(*tokens_, secret, now_ms);
  if (token == nullptr) {
    report_failed_login(request.peer);
    return {Role::kNone, "", request.peer};
  }
  return {token->rights.role, token->name, request.peer, std::shared_ptr<const Token>(tokens_, token)};
}

bool Auth::still_allowed(const http::Request& request, Role role) {
  try {
    return caller(request).role >= role;
  } catch (const Refused&) {
    return false;
  }
}

double Auth::wait_seconds(const http::Request& request, const Caller& caller) {
  const double now = options_.clock->monotonic_seconds();
  const std::lock_guard lock(mutex_);
  if (caller.role == Role::kNone) return unauthenticated_limiter_.take(request.peer, now);
  const double own = caller.token ? caller.token->rights.requests_per_second : 0;
  return limiter_.take(caller.name, now, own);
}

}  // namespace sinew::web
