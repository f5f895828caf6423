// Counter-based random numbers: a value is a function of (key, counter) and of nothing else.
//
// No stream is ever advanced behind anyone's back, so who draws first, on which thread or machine, can not change a
// number. Philox-4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
// All functions are pure and may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace sinew {

// 64 bits that name a stream of numbers.
struct RandomKey {
  uint64_t value = 0;
  bool operator==(const RandomKey&) const = default;
};

// Mixes words into a key; different word lists give unrelated keys.
RandomKey random_key(std::initializer_list<uint64_t> words);
// The key of a name ("dropout", "split") below another key.
RandomKey derive(RandomKey parent, std::string_view name);
RandomKey derive(RandomKey parent, uint64_t number);

// Four 32-bit words for (key, counter).
std::array<uint32_t, 4> philox(RandomKey key, uint64_t counter_low, uint64_t counter_high = 0);

// Fills with the words philox(key, 0), philox(key, 1), ... in order; vectorised.
void fill_random_bits(RandomKey key, std::span<uint32_t> out);

// A small sequential reader over one key, for code that wants a handful of draws.
class RandomStream {
 public:
  explicit RandomStream(RandomKey key) : key_(key) {}
  uint32_t bits32();
  uint64_t bits64();
  double uniform();  // [0, 1), 53 bits
  double uniform(double low, double high);
  double normal();                 // mean 0, deviation 1 (Box-Muller, both values used)
  uint64_t below(uint64_t bound);  // [0, bound), unbiased (Lemire 2019); bound > 0

 private:
  RandomKey key_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> words_{};
  int left_ = 0;
  double spare_normal_ = 0;
  bool has_spare_normal_ = false;
};

}  // namespace sinew
