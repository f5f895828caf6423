#include "base/key_pair.h"

#include <openssl/evp.h>

#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/hex.h"
#include "base/sha256.h"

namespace sinew {
namespace {

constexpr std::string_view kKeyLabel = "sinew-tls-1";  // separates this key from other uses of the secret
constexpr std::string_view kMemberLabel = "sinew-member-1";

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string member_text(MemberId member, const PublicKey& key) {
  std::string text(kMemberLabel);
  for (int i = 0; i < 8; ++i) text += static_cast<char>(static_cast<uint64_t>(member.value) >> (8 * i));
  return text.append(reinterpret_cast<const char*>(key.data()), key.size());
}

template <typename Bytes>
std::optional<Bytes> of_hex(std::string_view text) {
  Bytes bytes{};
  return read_hex(text, bytes) ? std::optional(bytes) : std::nullopt;
}

}  // namespace

KeyPair::KeyPair(EVP_PKEY* key) : key_(key, &EVP_PKEY_free) {
  SINEW_CHECK(key_ != nullptr);
  size_t size = public_key_.size();
  SINEW_CHECK(EVP_PKEY_get_raw_public_key(key, public_key_.data(), &size) == 1 && size == public_key_.size(), size);
}

KeyPair KeyPair::random() {
  return KeyPair(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
}

KeyPair KeyPair::of_secret(std::string_view secret) {
  SINEW_CHECK(!secret.empty());
  const auto seed = hmac_sha256(secret, kKeyLabel);  // any 32 bytes are a valid Ed25519 key
  return KeyPair(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
}

Signature KeyPair::sign(std::string_view message) const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  Signature signature{};
  size_t size = signature.size();
  SINEW_CHECK(context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1);
  SINEW_CHECK(EVP_DigestSign(context.get(), signature.data(), &size, bytes_of(message), message.size()) == 1);
  SINEW_CHECK(size == signature.size(), size);
  return signature;
}

bool is_signed_by(const PublicKey& key, std::string_view message, const Signature& signature) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> made(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()), &EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  return made && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, made.get()) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(), bytes_of(message), message.size()) == 1;
}

std::optional<PublicKey> public_key_of_hex(std::string_view text) {
  return of_hex<PublicKey>(text);
}

std::optional<Signature> signature_of_hex(std::string_view text) {
  return of_hex<Signature>(text);
}

Signature certify(const KeyPair& coordinator, MemberId member, const PublicKey& key) {
  return coordinator.sign(member_text(member, key));
}

bool is_certified(const PublicKey& coordinator, MemberId member, const PublicKey& key, const Signature& certificate) {
  return is_signed_by(coordinator, member_text(member, key), certificate);
}

MemberCredentials self_certified(std::string_view secret) {
  const KeyPair coordinator = KeyPair::of_secret(secret);
  MemberCredentials credentials;
  credentials.coordinator = coordinator.public_key();
  credentials.certificate = [coordinator, key = credentials.key.public_key()](MemberId me) {
    return certify(coordinator, me, key);
  };
  return credentials;
}

}  // namespace sinew
