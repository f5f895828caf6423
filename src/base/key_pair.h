// Ed25519 key pairs, by which the processes of a run prove who they are.
//
// The coordinators of a run make their key pair from the run's secret, so a successor has the same one. A member of a
// group makes a key pair of its own, and its private key never leaves the process. When the coordinator admits the
// member, it signs the member's id and public key: the member's certificate. Other members trust a process that shows a
// certificate and proves that it has the private key. So the members share no secret, and a process that the
// coordinator did not admit can be no member, whatever it has seen of other members.
//
// cluster/ gives the certificates, link/ checks them, and base/pinned_tls.h uses the keys for TLS. The functions have
// no state; any thread may call them.
#pragma once

#include <openssl/types.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/ids.h"

namespace sinew {

using PublicKey = std::array<unsigned char, 32>;
using Signature = std::array<unsigned char, 64>;

class KeyPair {
 public:
  static KeyPair random();
  static KeyPair of_secret(std::string_view secret);  // the same secret gives the same key pair
  const PublicKey& public_key() const { return public_key_; }
  Signature sign(std::string_view message) const;
  EVP_PKEY* handle() const { return key_.get(); }  // OpenSSL's object, which this object owns

 private:
  explicit KeyPair(EVP_PKEY* key);
  std::shared_ptr<EVP_PKEY> key_;
  PublicKey public_key_{};
};

bool is_signed_by(const PublicKey& key, std::string_view message, const Signature& signature);

// hex_of() (base/hex.h) writes keys and signatures as text.
std::optional<PublicKey> public_key_of_hex(std::string_view text);
std::optional<Signature> signature_of_hex(std::string_view text);

// ---- certificates of members ---------------------------------------------------------------------------------------

Signature certify(const KeyPair& coordinator, MemberId member, const PublicKey& key);
bool is_certified(const PublicKey& coordinator, MemberId member, const PublicKey& key, const Signature& certificate);

// What a member needs to prove who it is, and to recognise the other members of its run.
struct MemberCredentials {
  KeyPair key = KeyPair::random();
  PublicKey coordinator{};  // the key that signs the certificates of all members
  std::function<Signature(MemberId me)> certificate = nullptr;
};
// The credentials of a process that knows the run's secret and certifies itself (tests and benchmarks).
MemberCredentials self_certified(std::string_view secret);

}  // namespace sinew
