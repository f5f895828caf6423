#include "link/handshake.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <bit>
#include <cstring>

#include "base/check.h"

namespace sinew::link {
namespace {

constexpr std::array<char, 4> kMagic = {'S', 'N', 'W', 'L'};
constexpr uint16_t kVersion = 4;
constexpr std::string_view kLabel = "sinew-link-4";
static_assert(std::endian::native == std::endian::little);

template <typename Value>
void append(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// What the end with the role `who` signs. The nonces are new for each connection, so a proof holds for one connection.
std::string proof_text(Role who, const Hello& dialler, const Hello& listener) {
  std::string message(kLabel);
  append(message, who);
  append(message, dialler.from.value);
  append(message, listener.from.value);
  append(message, dialler.nonce);
  append(message, listener.nonce);
  append(message, dialler.job);
  return message;
}

}  // namespace

Hello make_hello(Role role, MemberId from, MemberId to, std::string_view job, bool wants_tls) {
  Hello hello{.role = role, .wants_tls = wants_tls, .from = from, .to = to};
  size_t length = 0;
  SINEW_CHECK(EVP_Q_digest(nullptr, "SHA256", nullptr, job.data(), job.size(),
                           reinterpret_cast<unsigned char*>(hello.job.data()), &length) == 1);
  SINEW_CHECK(length == hello.job.size(), length);
  SINEW_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(hello.nonce.data()), hello.nonce.size()) == 1);
  return hello;
}

std::array<std::byte, kHelloBytes> encode(const Hello& hello) {
  std::string bytes;
  append(bytes, kMagic);
  append(bytes, kVersion);
  append(bytes, hello.role);
  append(bytes, static_cast<uint8_t>(hello.wants_tls));
  append(bytes, hello.from.value);
  append(bytes, hello.to.value);
  append(bytes, hello.job);
  append(bytes, hello.nonce);
  append(bytes, hello.key);
  append(bytes, hello.certificate);
  std::array<std::byte, kHelloBytes> encoded;
  SINEW_CHECK(bytes.size() == encoded.size());
  std::memcpy(encoded.data(), bytes.data(), bytes.size());
  return encoded;
}

std::optional<PrefixTrouble> prefix_trouble(std::span<const std::byte, kPrefixBytes> prefix) {
  if (std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) return PrefixTrouble{true, "is no link"};
  uint16_t version = 0;
  std::memcpy(&version, prefix.data() + 4, sizeof(version));
  if (version == kVersion) return std::nullopt;
  return PrefixTrouble{false, "speaks version " + std::to_string(version) + " of the link, this member version " +
                                  std::to_string(kVersion)};
}

Hello decode(std::span<const std::byte, kHelloBytes> bytes) {
  Hello hello;
  hello.role = static_cast<Role>(bytes[6]);
  hello.wants_tls = bytes[7] != std::byte{0};
  std::memcpy(&hello.from.value, bytes.data() + 8, 8);
  std::memcpy(&hello.to.value, bytes.data() + 16, 8);
  std::memcpy(hello.job.data(), bytes.data() + 24, 32);
  std::memcpy(hello.nonce.data(), bytes.data() + 56, 32);
  std::memcpy(hello.key.data(), bytes.data() + 88, hello.key.size());
  std::memcpy(hello.certificate.data(), bytes.data() + 120, hello.certificate.size());
  return hello;
}

Proof prove(const KeyPair& key, Role who, const Hello& dialler, const Hello& listener) {
  return std::bit_cast<Proof>(key.sign(proof_text(who, dialler, listener)));
}

bool proves(std::span<const std::byte, kProofBytes> proof, Role who, const Hello& dialler, const Hello& listener) {
  Signature signature{};
  std::memcpy(signature.data(), proof.data(), signature.size());
  const Hello& prover = who == Role::dialler ? dialler : listener;
  return is_signed_by(prover.key, proof_text(who, dialler, listener), signature);
}

std::string meaning(uint8_t verdict) {
  switch (static_cast<Verdict>(verdict)) {
    case Verdict::welcome: return "welcome";
    case Verdict::not_proved: return "refused this member: it did not prove that the run's coordinator admitted it";
    case Verdict::wrong_member: return "refused this member: it is not the one that was meant";
    case Verdict::given_up: return "refused this member: it has counted it as lost";
  }
  return "refused this member for an unknown reason (" + std::to_string(verdict) + ")";
}

}  // namespace sinew::link
