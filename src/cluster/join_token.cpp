#include "cluster/join_token.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/clock.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "cluster/protocol.h"
#include "rundir/rundir.h"

namespace sinew::cluster {
namespace {

// a part of the signed text, so that no other use of the secret gives the code of a token
constexpr std::string_view kName = "sinew-join-1";
constexpr size_t kIdDigits = 16, kCodeDigits = 64;

std::string token_code(std::string_view signed_text, const std::string& run_secret) {
  return hex_of(hmac_sha256(run_secret, signed_text));
}

std::string revoked_directory(const std::string& run_directory) {
  return rundir::file_in(run_directory, rundir::kRevokedTokens);
}

}  // namespace

std::string new_join_token(const std::string& run_secret, int64_t expires) {
  const std::string text = std::string(kName) + "." + random_hex(kIdDigits / 2) + "." + std::to_string(expires) + "." +
                           hex_of(coordinator_key(run_secret));
  return text + "." + token_code(text, run_secret);
}

std::optional<JoinToken> join_token_of(std::string_view text) {
  std::array<std::string_view, 5> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t end = i + 1 < parts.size() ? text.find('.') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    parts[i] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto& [name, id, expires, key, code] = parts;
  JoinToken token;
  const auto [rest, error] = std::from_chars(expires.data(), expires.data() + expires.size(), token.expires);
  const bool is_number = error == std::errc() && rest == expires.data() + expires.size() && token.expires >= 0;
  const auto coordinator = public_key_of_hex(key);
  if (name != kName || !is_token_id(id) || !is_number || !coordinator || !is_hex(code, kCodeDigits))
    return std::nullopt;
  token.id = id;
  token.coordinator = *coordinator;
  return token;
}

std::optional<JoinToken> genuine_join_token(const std::string& text, const std::string& run_secret) {
  auto token = join_token_of(text);
  if (!token || run_secret.empty()) return std::nullopt;
  const size_t dot = text.rfind('.');
  const std::string code = token_code(std::string_view(text).substr(0, dot), run_secret);
  const bool same = CRYPTO_memcmp(code.data(), text.data() + dot + 1, kCodeDigits) == 0;
  return same ? token : std::nullopt;
}

// The text of the incarnation is the member's choice, so it is the last part.
std::string membership_proof(const std::string& run_secret, const std::string& token_id, MemberId id,
                             const std::string& incarnation) {
  return token_code("sinew-membership-1." + token_id + "." + std::to_string(id.value) + "." + incarnation, run_secret);
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool is_token_id(std::string_view text) {
  return is_hex(text, kIdDigits);
}

std::string id_in_run(const std::string& given, const std::string& run_secret) {
  return is_token_id(given) || genuine_join_token(given, run_secret) ? id_of_token(given) : "";
}

std::string id_of_token(std::string_view given) {
  if (is_token_id(given)) return std::string(given);
  const auto token = join_token_of(given);
  return token ? token->id : "";
}

std::optional<TokenTrouble> trouble_with(const JoinToken& token, double wall_seconds,
                                         const std::set<std::string>& revoked) {
  if (revoked.contains(token.id)) return TokenTrouble{kTokenRevoked, "the join token " + token.id + " was revoked"};
  if (wall_seconds < static_cast<double>(token.expires)) return std::nullopt;
  return TokenTrouble{kTokenExpired,
                      "the join token " + token.id + " expired at " + utc_iso(static_cast<double>(token.expires))};
}

PublicKey coordinator_key(const std::string& secret) {
  const auto token = join_token_of(secret);
  return token ? token->coordinator : KeyPair::of_secret(secret).public_key();
}

void record_revocation(Disk& disk, const std::string& run_directory, const std::string& id, double wall_seconds) {
  const std::string directory = revoked_directory(run_directory);
  make_directories_durably(disk, directory);
  write_durably(disk, directory + "/" + id, utc_iso(wall_seconds) + "\n");
}

std::set<std::string> revoked_tokens(Disk& disk, const std::string& run_directory) {
  std::set<std::string> ids;
  const std::string directory = revoked_directory(run_directory);
  if (!disk.exists(directory)) return ids;
  for (const Disk::Entry& entry : disk.list(directory)) {
    if (is_token_id(entry.name)) ids.insert(entry.name);  // other names are files that are being written
  }
  return ids;
}

}  // namespace sinew::cluster
