#include "base/random.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace sinew {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

// how many counters philox_block computes side by side, so that the compiler can vectorise each line
constexpr int kWidth = 16;

void philox_block(RandomKey key, uint64_t first_counter, uint32_t* out) {
  uint32_t x0[kWidth], x1[kWidth], x2[kWidth], x3[kWidth];
  for (int i = 0; i < kWidth; ++i) {
    const uint64_t counter = first_counter + static_cast<uint64_t>(i);
    x0[i] = static_cast<uint32_t>(counter);
    x1[i] = static_cast<uint32_t>(counter >> 32);
    x2[i] = 0;
    x3[i] = 0;
  }
  auto key0 = static_cast<uint32_t>(key.value), key1 = static_cast<uint32_t>(key.value >> 32);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kWidth; ++i) {
      const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * x0[i];
      const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * x2[i];
      const uint32_t y0 = static_cast<uint32_t>(product1 >> 32) ^ x1[i] ^ key0;
      const uint32_t y2 = static_cast<uint32_t>(product0 >> 32) ^ x3[i] ^ key1;
      x1[i] = static_cast<uint32_t>(product1);
      x3[i] = static_cast<uint32_t>(product0);
      x0[i] = y0;
      x2[i] = y2;
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  for (int i = 0; i < kWidth; ++i) {
    out[4 * i] = x0[i];
    out[4 * i + 1] = x1[i];
    out[4 * i + 2] = x2[i];
    out[4 * i + 3] = x3[i];
  }
}

uint64_t mix(uint64_t value) {  // the finaliser of SplitMix64 (Steele, Lea, Flood 2014)
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

}  // namespace

RandomKey random_key(std::initializer_list<uint64_t> words) {
  uint64_t state = 0x53696E6577ULL + words.size();
  for (const uint64_t word : words) state = mix((state + 0x9E3779B97F4A7C15) ^ mix(word + 0x632BE59BD9B4E019));
  return {state};
}

RandomKey derive(RandomKey parent, std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a; random_key below mixes it further
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return random_key({parent.value, hash, name.size()});
}

RandomKey derive(RandomKey parent, uint64_t number) {
  return random_key({parent.value, number});
}

std::array<uint32_t, 4> philox(RandomKey key, uint64_t counter_low, uint64_t counter_high) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                               static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  auto key0 = static_cast<uint32_t>(key.value), key1 = static_cast<uint32_t>(key.value >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * x[0];
    const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * x[2];
    x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

void fill_random_bits(RandomKey key, std::span<uint32_t> out) {
  size_t done = 0;
  uint64_t counter = 0;
  while (out.size() - done >= 4 * kWidth) {
    philox_block(key, counter, out.data() + done);
    done += 4 * kWidth;
    counter += kWidth;
  }
  while (done < out.size()) {
    const auto words = philox(key, counter++);
    for (const uint32_t word : words) {
      if (done < out.size()) out[done++] = word;
    }
  }
}

uint32_t RandomStream::bits32() {
  if (left_ == 0) {
    words_ = philox(key_, counter_++);
    left_ = 4;
  }
  return words_[static_cast<size_t>(4 - left_--)];
}

uint64_t RandomStream::bits64() {
  const uint64_t high = bits32();
  return (high << 32) | bits32();
}

double RandomStream::uniform() {
  return static_cast<double>(bits64() >> 11) * 0x1.0p-53;
}

double RandomStream::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

double RandomStream::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

uint64_t RandomStream::below(uint64_t bound) {
  SINEW_CHECK(bound > 0);
  while (true) {
    const auto product = static_cast<unsigned __int128>(bits64()) * bound;
    const auto low = static_cast<uint64_t>(product);
    if (low >= bound || low >= (0 - bound) % bound) return static_cast<uint64_t>(product >> 64);
  }
}

}  // namespace sinew
