#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <vector>

#include "base/hex.h"

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

constexpr size_t kLane = 1024;  // bytes in each of the three streams, which are computed side by side

// Advances a checksum over kLane zero bytes. This function is linear, so its result is the xor of four table values,
// one for each byte of the checksum.
struct BehindZeros {
  std::array<std::array<uint32_t, 256>, 4> of{};
  BehindZeros() {
    std::array<uint32_t, 32> bits{};
    for (uint32_t bit = 0; bit < 32; ++bit) {
      uint32_t crc = uint32_t{1} << bit;
      for (size_t i = 0; i < kLane; ++i) crc = kCrcTable[crc & 0xFF] ^ (crc >> 8);
      bits[bit] = crc;
    }
    for (uint32_t byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < 256; ++value) {
        for (uint32_t bit = 0; bit < 8; ++bit) {
          if (((value >> bit) & 1) != 0) of[byte][value] ^= bits[8 * byte + bit];
        }
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return of[0][crc & 0xFF] ^ of[1][(crc >> 8) & 0xFF] ^ of[2][(crc >> 16) & 0xFF] ^ of[3][crc >> 24];
  }
};

uint64_t word_at(const std::byte* bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, 8);
  return word;
}

// The crc32 instruction has a latency of three cycles, and one can start in every cycle. So three independent streams
// keep it busy. Their checksums are then combined (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32
// Instruction", Intel 2011).
__attribute__((target("sse4.2"))) uint32_t crc32c_hardware(std::span<const std::byte> bytes, uint32_t crc) {
  static const BehindZeros behind_zeros;
  size_t i = 0;
  for (; i + 3 * kLane <= bytes.size(); i += 3 * kLane) {
    const std::byte* at = bytes.data() + i;
    uint64_t first = crc, second = 0, third = 0;
    for (const std::byte* end = at + kLane; at != end; at += 8) {
      first = __builtin_ia32_crc32di(first, word_at(at));
      second = __builtin_ia32_crc32di(second, word_at(at + kLane));
      third = __builtin_ia32_crc32di(third, word_at(at + 2 * kLane));
    }
    crc = behind_zeros(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    crc = behind_zeros(crc) ^ static_cast<uint32_t>(third);
  }
  uint64_t wide = crc;
  for (; i + 8 <= bytes.size(); i += 8) wide = __builtin_ia32_crc32di(wide, word_at(bytes.data() + i));
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
  XXH3_state_t xxh;  // needs 64-byte alignment, which make_unique provides
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
  std::array<std::byte, 16> bytes{};
  put_big_endian(digest.high, bytes.data());
  put_big_endian(digest.low, bytes.data() + 8);
  return hex_of(std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

bool from_hex(std::string_view text, Digest& digest) {
  std::array<unsigned char, 16> bytes{};
  if (!read_hex(text, bytes)) return false;
  digest = {};
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint64_t& half = i < 8 ? digest.high : digest.low;
    half = half << 8 | bytes[i];
  }
  return true;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t start) {
  static const bool hardware = __builtin_cpu_supports("sse4.2") != 0;
  const uint32_t crc = ~start;
  return ~(hardware ? crc32c_hardware(bytes, crc) : crc32c_table(bytes, crc));
}

}  // namespace sinew
