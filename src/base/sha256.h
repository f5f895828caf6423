// SHA-256 of bytes: cryptographic, so a content can be named by it, and believed, wherever it came from.
//
// XXH3 (base/hash.h) is some times faster and tells accidental change only.
#pragma once

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
  std::string hex();  // 64 lower-case digits; once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);
bool is_sha256(std::string_view text);  // 64 lower-case hex digits

}  // namespace sinew
