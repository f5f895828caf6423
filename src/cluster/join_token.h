// Join tokens: with a token, a worker of another machine joins a run without the run's secret
// (docs/formats/coordinator.md).
//
// Whoever knows the run's secret controls the run, so the secret stays on the machine of the coordinator. A token
// allows the calls of a member, and no other. It has an id, an end, and the public key by which its holder recognises
// the coordinator. Its code is a HMAC under the run's secret. So every coordinator of the run recognises the run's
// tokens, and needs no list of them. It only needs the list of the revoked ones, which the run directory keeps.
//
// A token is checked at every call and at every tick. When it has expired or was revoked, the coordinator fences its
// member; the other members then close their links to it. It cannot come back in the place of another member, because
// members prove to each other by keys of their own (base/key_pair.h) who they are.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/disk.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/key_pair.h"

namespace sinew::cluster {

struct JoinToken {
  std::string id;           // 16 hex digits
  int64_t expires = 0;      // seconds since 1970
  PublicKey coordinator{};  // the public key of all coordinators of the run
};

// Makes the text of a token with a new id. It expires at `expires`, in seconds since 1970.
std::string new_join_token(const std::string& run_secret, int64_t expires);
// Reads the text of a token, which may be forged. Returns nullopt if the text is no token.
std::optional<JoinToken> join_token_of(std::string_view text);
// Returns the token if the text was made with this run's secret.
std::optional<JoinToken> genuine_join_token(const std::string& text, const std::string& run_secret);
bool is_token_id(std::string_view text);
std::string id_of_token(std::string_view given);  // `given` is an id or the text of a token; "" if it is neither
// Like id_of_token, but also returns "" for a token of another run. It accepts any id, because the run keeps no list of
// its ids.
std::string id_in_run(const std::string& given, const std::string& run_secret);

// Returns the text by which a member proves to every coordinator of the run that it joined with this token and got this
// id. Only the coordinator that admits a member makes it, and only the member learns it: unlike the member's
// certificate (base/key_pair.h), it is shown to no other member.
std::string membership_proof(const std::string& run_secret, const std::string& token_id, MemberId id,
                             const std::string& incarnation);
// Compares two secrets in a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);

// Why the coordinator refuses calls with this token. `what` is a sentence without its subject: "expired at ...".
struct TokenTrouble {
  ErrorCode code;
  std::string what;
};
std::optional<TokenTrouble> trouble_with(const JoinToken& token, double wall_seconds,
                                         const std::set<std::string>& revoked);

// Returns the public key of the run's coordinators. `secret` is the run's secret or a token; it must not be empty.
PublicKey coordinator_key(const std::string& secret);

// ---- the revoked tokens of a run directory: one file for each, RUN/revoked/ID --------------------------------------

// Returns once the file is durable. Any process may call it, at any time.
void record_revocation(Disk& disk, const std::string& run_directory, const std::string& id, double wall_seconds);
std::set<std::string> revoked_tokens(Disk& disk, const std::string& run_directory);

}  // namespace sinew::cluster
