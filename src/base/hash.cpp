#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <vector>

namespace sinew {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}
constexpr auto kCrcTable = crc_table();

void put_big_endian(uint64_t value, std::byte* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(value >> (56 - 8 * i));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

__attribute__((target("sse4.2"))) uint32_t crc32c_hardware(std::span<const std::byte> bytes, uint32_t crc) {
  uint64_t wide = crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    __builtin_memcpy(&word, bytes.data() + i, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; i < bytes.size(); ++i) crc = __builtin_ia32_crc32qi(crc, static_cast<uint8_t>(bytes[i]));
  return crc;
}

uint32_t crc32c_table(std::span<const std::byte> bytes, uint32_t crc) {
  for (const std::byte byte : bytes) crc = kCrcTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  return crc;
}

}  // namespace

Digest digest_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Digest digest_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text.data(), text.size())));
}

Digest digest_of(std::span<const Digest> parts) {
  std::vector<std::byte> bytes(parts.size() * 16);
  for (size_t i = 0; i < parts.size(); ++i) {
    put_big_endian(parts[i].high, bytes.data() + 16 * i);
    put_big_endian(parts[i].low, bytes.data() + 16 * i + 8);
  }
  return digest_of(std::span<const std::byte>(bytes));
}

struct DigestStream::State {
  XXH3_state_t xxh;  // wants 64-byte alignment, which make_unique honours
};

DigestStream::DigestStream() : state_(std::make_unique<State>()) {
  reset();
}
DigestStream::~DigestStream() = default;
DigestStream::DigestStream(DigestStream&&) noexcept = default;
DigestStream& DigestStream::operator=(DigestStream&&) noexcept = default;

void DigestStream::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

Digest DigestStream::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.high64, hash.low64};
}

void DigestStream::reset() {
  XXH3_128bits_reset(&state_->xxh);
}

std::string to_hex(Digest digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint64_t half : {digest.high, digest.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text.push_back(kDigits[(half >> shift) & 15]);
  }
  return text;
}

bool from_hex(std::string_view text, Digest& digest) {
  if (text.size() != 32) return false;
  uint64_t halves[2] = {0, 0};
  for (size_t i = 0; i < 32; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return false;
    halves[i / 16] = (halves[i / 16] << 4) | static_cast<uint64_t>(digit);
  }
  digest = {halves[0], halves[1]};
  return true;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t start) {
  static const bool hardware = __builtin_cpu_supports("sse4.2") != 0;
  const uint32_t crc = ~start;
  return ~(hardware ? crc32c_hardware(bytes, crc) : crc32c_table(bytes, crc));
}

}  // namespace sinew
