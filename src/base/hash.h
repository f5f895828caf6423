// Computes XXH3-128 digests of bytes. They are fast and not cryptographic: they detect accidental changes, not
// deliberate ones.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sinew {

struct Digest {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Digest&) const = default;
};

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(std::string_view text);
Digest digest_of(std::span<const Digest> parts);  // the digest of a list of digests; depends on their order

// Computes the digest of bytes that arrive in parts. It equals digest_of(all bytes), however the bytes are divided into
// parts.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(DigestStream&&) noexcept;
  DigestStream& operator=(DigestStream&&) noexcept;
  void update(std::span<const std::byte> bytes);
  Digest digest() const;  // the digest of the bytes so far; more bytes may follow
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string to_hex(Digest digest);                     // 32 lower-case hex digits, high half first
bool from_hex(std::string_view text, Digest& digest);  // returns false if the text is not 32 lower-case hex digits

// CRC-32C (Castagnoli, polynomial 0x82F63B78 reflected), as TensorBoard's event files and link/ use it. `start` is the
// checksum of the preceding bytes.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t start = 0);

}  // namespace sinew
