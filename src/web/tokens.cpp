// Reads and writes the file of tokens. A secret consists of 256 random bits, so one round of SHA-256 with a salt
// protects it as well as many rounds would.
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/disk.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/joined.h"
#include "base/private_files.h"
#include "base/sha256.h"
#include "base/size_text.h"
#include "base/trusted_file.h"
#include "base/utf8.h"
#include "base/wildcards.h"
#include "web/web.h"

namespace sinew::web {
namespace {

using Json = nlohmann::ordered_json;

std::string hash_of(const std::string& salt, const std::string& secret) {
  return sha256_hex(salt + secret);
}

// Keeps other processes from changing the token file while this process reads it and writes it again. The kernel
// releases the lock when the process dies. The lock is on a file of its own, because each change replaces the token
// file.
class TokensLock {
 public:
  explicit TokensLock(const std::string& tokens) {
    const std::string path = tokens + ".lock";
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor_ < 0 || !lock()) {
      const int code = errno;
      if (descriptor_ >= 0) ::close(descriptor_);
      throw Error("SERVER_TOKEN_FILE_LOCKED", "cannot lock " + path + ": " + std::strerror(code),
                  "check that its directory exists and is writable, and that no other process holds the lock");
    }
  }
  TokensLock(const TokensLock&) = delete;
  TokensLock& operator=(const TokensLock&) = delete;
  ~TokensLock() { ::close(descriptor_); }

 private:
  bool lock() const {
    constexpr double kTimeoutSeconds = 10, kPauseSeconds = 0.01;
    for (double waited = 0; ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0; waited += kPauseSeconds) {
      if ((errno != EWOULDBLOCK && errno != EINTR) || waited > kTimeoutSeconds) return false;
      system_clock().sleep_seconds(kPauseSeconds);
    }
    return true;
  }

  int descriptor_ = -1;
};

Json json_of(const Token& token) {
  const TokenRights& rights = token.rights;
  Json json{{"name", token.name},     {"role", to_string(rights.role)}, {"salt", token.salt},
            {"sha256", token.hash},   {"made_ms", token.made_ms},       {"experiments", rights.experiments},
            {"models", rights.models}};
  if (rights.expires_ms != 0) json["expires_ms"] = rights.expires_ms;
  if (rights.requests_per_second > 0) json["requests_per_second"] = rights.requests_per_second;
  if (rights.upload_bytes > 0) json["upload_bytes"] = rights.upload_bytes;
  if (rights.upload_bytes_per_day > 0) json["upload_bytes_per_day"] = rights.upload_bytes_per_day;
  if (!token.hash_before.empty()) {
    json["before"] = {{"salt", token.salt_before}, {"sha256", token.hash_before}, {"until_ms", token.before_until_ms}};
  }
  return json;
}

// Throws a JSON exception if a field is missing or has the wrong type. In files of earlier versions, tokens have only
// the first five fields.
Token token_of(const Json& entry) {
  Token token;
  const auto role = role_of(entry.at("role").get<std::string>());
  if (!role) throw Error("SERVER_BAD_TOKEN_FILE", "a role is none of read, submit and admin", "");
  TokenRights& rights = token.rights;
  rights.role = *role;
  token.name = entry.at("name").get<std::string>();
  token.salt = entry.at("salt").get<std::string>();
  token.hash = entry.at("sha256").get<std::string>();
  token.made_ms = entry.at("made_ms").get<int64_t>();
  rights.experiments = entry.value("experiments", rights.experiments);
  rights.models = entry.value("models", rights.models);
  rights.expires_ms = entry.value("expires_ms", int64_t{0});
  rights.requests_per_second = entry.value("requests_per_second", 0.0);
  rights.upload_bytes = entry.value("upload_bytes", int64_t{0});
  rights.upload_bytes_per_day = entry.value("upload_bytes_per_day", int64_t{0});
  if (const auto before = entry.find("before"); before != entry.end()) {
    token.salt_before = before->at("salt").get<std::string>();
    token.hash_before = before->at("sha256").get<std::string>();
    token.before_until_ms = before->at("until_ms").get<int64_t>();
  }
  return token;
}

void write_tokens(const std::string& path, const std::vector<Token>& tokens) {
  Json list = Json::array();
  for (const Token& token : tokens) list.push_back(json_of(token));
  const PrivateFiles private_files;
  write_durably(system_disk(), path, Json{{"tokens", list}}.dump(1) + "\n");
}

int64_t now_ms(Clock& clock) {
  return static_cast<int64_t>(clock.wall_seconds() * 1000);
}

// Gives the token a new secret and returns it. Writes it to `secret_file`, if one is given, before any server accepts
// it.
std::string renew_secret(Token& token, const std::string& secret_file, Clock& clock) {
  const std::string secret = "sinew-" + random_hex(32);
  token.salt = random_hex(16);
  token.hash = hash_of(token.salt, secret);
  token.made_ms = now_ms(clock);
  const PrivateFiles private_files;
  if (!secret_file.empty()) write_durably(system_disk(), secret_file, secret + "\n");
  return secret;
}

bool is_printable(const std::string& text) {
  return !text.empty() && text.size() <= 100 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

void check_patterns(const std::vector<std::string>& patterns) {
  const bool valid = std::all_of(patterns.begin(), patterns.end(), [](const std::string& pattern) {
    return !pattern.empty() && pattern.size() <= 500 && first_invalid_utf8(pattern) == std::string_view::npos;
  });
  if (!patterns.empty() && valid) return;
  throw Error("SERVER_BAD_TOKEN_SCOPE", "a scope has no pattern, or an empty one, or one longer than 500 bytes",
              "give names, or patterns such as team-a/*");
}

bool is_secret(const std::string& salt, const std::string& hash, const std::string& secret) {
  const std::string mine = hash_of(salt, secret);
  return mine.size() == hash.size() && CRYPTO_memcmp(mine.data(), hash.data(), mine.size()) == 0;
}

}  // namespace

const char* to_string(Role role) {
  constexpr const char* kNames[] = {"none", "read", "submit", "admin"};
  return kNames[static_cast<int>(role)];
}

std::optional<Role> role_of(const std::string& word) {
  for (const Role role : {Role::kRead, Role::kSubmit, Role::kAdmin}) {
    if (word == to_string(role)) return role;
  }
  return std::nullopt;
}

std::vector<Token> read_tokens(const std::string& path) {
  if (!system_disk().exists(path)) return {};
  check_trusted(path);
  const auto malformed = [&](const std::string& why) {
    return Error("SERVER_BAD_TOKEN_FILE", "the token file " + path + " is malformed: " + why,
                 "correct the file, or remove it and add the tokens again");
  };
  std::vector<Token> tokens;
  const std::string text = read_text(system_disk(), path);
  try {
    const Json file = Json::parse(text);
    for (const Json& entry : file.at("tokens")) tokens.push_back(token_of(entry));
  } catch (const nlohmann::json::exception& error) {
    throw malformed(error.what());
  } catch (const Error& error) {
    throw malformed(error.what());
  }
  return tokens;
}

std::string add_token(const std::string& path, const std::string& name, const TokenRights& rights,
                      const std::string& secret_file, Clock& clock) {
  if (!is_printable(name) || name == kLocalCaller) {
    throw Error("SERVER_BAD_TOKEN_NAME", "'" + name + "' is not a valid name for a token",
                "use 1 to 100 printable ASCII characters without spaces, and not 'local'");
  }
  check_patterns(rights.experiments);
  check_patterns(rights.models);
  const TokensLock lock(path);
  std::vector<Token> tokens = read_tokens(path);
  if (std::ranges::find(tokens, name, &Token::name) != tokens.end())
    throw Error("SERVER_TOKEN_EXISTS", "there is a token '" + name + "' already",
                "give it a new secret with `sinew server token rotate`, or remove it first");
  Token token;
  token.name = name;
  token.rights = rights;
  const std::string secret = renew_secret(token, secret_file, clock);
  tokens.push_back(std::move(token));
  write_tokens(path, tokens);
  return secret;
}

bool is_admin(const std::string& tokens, const std::string& owner) {
  if (owner == kLocalCaller) return true;
  const std::vector<Token> all = read_tokens(tokens);
  const auto token = std::ranges::find(all, owner, &Token::name);
  return token != all.end() && token->rights.role == Role::kAdmin;
}

std::string rotate_token(const std::string& path, const std::string& name, double overlap_seconds,
                         std::optional<int64_t> expires_ms, const std::string& secret_file, Clock& clock) {
  const TokensLock lock(path);
  std::vector<Token> tokens = read_tokens(path);
  const auto token = std::ranges::find(tokens, name, &Token::name);
  if (token == tokens.end())
    throw Error("SERVER_NO_TOKEN", "there is no token '" + name + "'", "`sinew server token list` lists the tokens");
  token->salt_before = overlap_seconds > 0 ? token->salt : "";
  token->hash_before = overlap_seconds > 0 ? token->hash : "";
  token->before_until_ms = now_ms(clock) + static_cast<int64_t>(overlap_seconds * 1000);
  if (expires_ms) token->rights.expires_ms = *expires_ms;
  const std::string secret = renew_secret(*token, secret_file, clock);
  write_tokens(path, tokens);
  return secret;
}

bool remove_token(const std::string& path, const std::string& name) {
  if (!system_disk().exists(path)) return false;
  const TokensLock lock(path);
  std::vector<Token> tokens = read_tokens(path);
  if (std::erase_if(tokens, [&](const Token& token) { return token.name == name; }) == 0) return false;
  write_tokens(path, tokens);
  return true;
}

const Token* find_token(const std::vector<Token>& tokens, const std::string& secret, int64_t now_ms) {
  const Token* found = nullptr;
  for (const Token& token : tokens) {
    const bool now = is_secret(token.salt, token.hash, secret);
    const bool before = is_secret(token.salt_before, token.hash_before, secret) && now_ms < token.before_until_ms;
    const bool expired = token.rights.expires_ms != 0 && now_ms >= token.rights.expires_ms;
    if ((now || before) && !expired) found = &token;
  }
  return found;
}

std::vector<std::string> scope_of(const std::string& list) {
  std::istringstream stream(list);
  std::vector<std::string> patterns;
  for (std::string pattern; std::getline(stream, pattern, ',');) patterns.push_back(pattern);
  return patterns;
}

bool fits_scope(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fits_wildcards(text, pattern, {.any = '*', .one = 0}); });
}

std::string to_string(const Token& token) {
  const TokenRights& rights = token.rights;
  const auto seconds = [](int64_t ms) { return static_cast<double>(ms) / 1000; };
  std::string role = to_string(rights.role);
  role.resize(8, ' ');
  std::string line = role + " " + token.name + "  made " + utc_iso(seconds(token.made_ms));
  if (rights.expires_ms != 0) line += "  expires " + utc_iso(seconds(rights.expires_ms));
  if (rights.experiments != TokenRights().experiments) line += "  experiments " + joined(rights.experiments, ",");
  if (rights.models != TokenRights().models) line += "  models " + joined(rights.models, ",");
  if (rights.requests_per_second > 0)
    line += "  " + std::to_string(static_cast<int64_t>(rights.requests_per_second)) + " requests/s";
  if (rights.upload_bytes > 0) line += "  files up to " + size_text(rights.upload_bytes);
  if (rights.upload_bytes_per_day > 0) line += "  uploads up to " + size_text(rights.upload_bytes_per_day) + " a day";
  if (!token.hash_before.empty())
    line += "  the secret before it works until " + utc_iso(seconds(token.before_until_ms));
  return line;
}

}  // namespace sinew::web
