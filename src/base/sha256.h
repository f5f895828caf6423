// Computes SHA-256 digests of bytes. SHA-256 is cryptographic: its digest identifies the bytes even if an attacker
// chose them.
//
// XXH3 (base/hash.h) is several times faster, but detects only accidental changes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sinew {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  std::string hex();  // 64 lower-case hex digits; call it once, after the last update

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);
// HMAC-SHA256: only a process that knows the secret can compute it.
std::array<unsigned char, 32> hmac_sha256(std::string_view secret, std::string_view message);
bool is_sha256(std::string_view text);  // returns whether the text is 64 lower-case hex digits

}  // namespace sinew
