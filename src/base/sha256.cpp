#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "base/check.h"
#include "base/hex.h"

namespace sinew {

struct Sha256::State {
  State() {
    SINEW_CHECK(context != nullptr);
    SINEW_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1);
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  SINEW_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  SINEW_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1 && size == digest.size(), size);
  return hex_of(digest);
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

std::array<unsigned char, 32> hmac_sha256(std::string_view secret, std::string_view message) {
  std::array<unsigned char, 32> code{};
  unsigned length = 0;
  const auto* const done =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), code.data(), &length);
  SINEW_CHECK(done != nullptr && length == code.size(), length);
  return code;
}

bool is_sha256(std::string_view text) {
  return is_hex(text, 64);
}

}  // namespace sinew
