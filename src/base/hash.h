// XXH3-128 of bytes: fast, not cryptographic; tells accidental change, not malice.
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
Digest digest_of(std::span<const Digest> parts);  // a digest of digests, in order

// The digest of bytes that come in pieces; equal to digest_of all of them at once.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(DigestStream&&) noexcept;
  DigestStream& operator=(DigestStream&&) noexcept;
  void update(std::span<const std::byte> bytes);
  Digest digest() const;  // of everything so far; more may follow
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string to_hex(Digest digest);                     // 32 lower-case hex digits, high half first
bool from_hex(std::string_view text, Digest& digest);  // false if not 32 hex digits

// CRC-32C (Castagnoli, polynomial 0x82F63B78 reflected), as TensorBoard records and links carry it.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t start = 0);

}  // namespace sinew
