// Writes and checks the messages of the handshake (docs/formats/link.md), without a socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/key_pair.h"

namespace sinew::link {

inline constexpr size_t kPrefixBytes = 8, kHelloBytes = 184, kProofBytes = 64, kVerdictBytes = 1 + kProofBytes;
using Proof = std::array<std::byte, kProofBytes>;

enum class Role : uint8_t { dialler = 1, listener = 2 };

enum class Verdict : uint8_t { welcome = 0, not_proved = 1, wrong_member = 2, given_up = 3 };

struct Hello {
  Role role = Role::dialler;
  bool wants_tls = false;
  MemberId from, to;
  std::array<std::byte, 32> job{};  // SHA-256 of the job's name
  std::array<std::byte, 32> nonce{};
  PublicKey key{};          // the sender's public key
  Signature certificate{};  // the run's coordinator confirms that the member `from` has this key
};

// Makes a hello with a new nonce from the system's source of random secrets, and without a key.
Hello make_hello(Role role, MemberId from, MemberId to, std::string_view job, bool wants_tls = false);
std::array<std::byte, kHelloBytes> encode(const Hello& hello);

// What is wrong with the first bytes of a hello. prefix_trouble() returns nullopt if nothing is wrong.
struct PrefixTrouble {
  bool stranger = false;  // the bytes are not a hello
  std::string why;        // "speaks version 2 of the link, this member version 3"
};
std::optional<PrefixTrouble> prefix_trouble(std::span<const std::byte, kPrefixBytes> prefix);
Hello decode(std::span<const std::byte, kHelloBytes> hello);

// Returns the proof by which the end with the role `who` shows that it has the private key of its hello.
Proof prove(const KeyPair& key, Role who, const Hello& dialler, const Hello& listener);
bool proves(std::span<const std::byte, kProofBytes> proof, Role who, const Hello& dialler, const Hello& listener);

// Returns the verdict as a message for the dialler's on_lost: "refused this member: ...".
std::string meaning(uint8_t verdict);

}  // namespace sinew::link
