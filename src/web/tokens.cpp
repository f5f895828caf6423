// The file of tokens. A secret is 256 random bits, so one round of SHA-256 with a salt hides it as well as many rounds.
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/private_files.h"
#include "base/sha256.h"
#include "web/web.h"

namespace sinew::web {
namespace {

using Json = nlohmann::ordered_json;

std::string hash_of(const std::string& salt, const std::string& secret) {
  return sha256_hex(salt + secret);
}

// Keeps other processes from changing the token file while this one reads it and writes it again. The kernel releases
// the lock when the process dies. The lock is on a separate file, because each change replaces the token file.
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

void write_tokens(const std::string& path, const std::vector<Token>& tokens) {
  Json list = Json::array();
  for (const Token& token : tokens) {
    list.push_back({{"name", token.name},
                    {"role", to_string(token.role)},
                    {"salt", token.salt},
                    {"sha256", token.hash},
                    {"made_ms", token.made_ms}});
  }
  const PrivateFiles private_files;
  write_durably(system_disk(), path, Json{{"tokens", list}}.dump(1) + "\n");
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
  const auto malformed = [&](const std::string& why) {
    return Error("SERVER_BAD_TOKEN_FILE", "the token file " + path + " is malformed: " + why,
                 "correct the file, or remove it and add the tokens again");
  };
  std::vector<Token> tokens;
  const std::string text = read_text(system_disk(), path);
  try {
    const Json file = Json::parse(text);
    for (const Json& entry : file.at("tokens")) {
      const auto role = role_of(entry.at("role").get<std::string>());
      if (!role) throw malformed("a role is none of read, submit and admin");
      Token token;
      token.name = entry.at("name").get<std::string>();
      token.role = *role;
      token.salt = entry.at("salt").get<std::string>();
      token.hash = entry.at("sha256").get<std::string>();
      token.made_ms = entry.at("made_ms").get<int64_t>();
      tokens.push_back(std::move(token));
    }
  } catch (const nlohmann::json::exception& error) {
    throw malformed(error.what());
  }
  return tokens;
}

std::string add_token(const std::string& path, const std::string& name, Role role, Clock& clock) {
  const bool printable = std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (name.empty() || name.size() > 100 || !printable) {
    throw Error("SERVER_BAD_TOKEN_NAME", "'" + name + "' is not a valid name for a token",
                "use 1 to 100 printable ASCII characters without spaces");
  }
  const TokensLock lock(path);
  std::vector<Token> tokens = read_tokens(path);
  std::erase_if(tokens, [&](const Token& token) { return token.name == name; });
  const std::string secret = "sinew-" + random_hex(32);
  const std::string salt = random_hex(16);
  Token token{name, role, salt, "", static_cast<int64_t>(clock.wall_seconds() * 1000)};
  token.hash = hash_of(token.salt, secret);
  tokens.push_back(std::move(token));
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

const Token* find_token(const std::vector<Token>& tokens, const std::string& secret) {
  const Token* found = nullptr;
  for (const Token& token : tokens) {
    const std::string hash = hash_of(token.salt, secret);
    if (hash.size() == token.hash.size() && CRYPTO_memcmp(hash.data(), token.hash.data(), hash.size()) == 0) {
      found = &token;
    }
  }
  return found;
}

}  // namespace sinew::web
