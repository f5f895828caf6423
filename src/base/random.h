// Counter-based random numbers: each value is a function of (key, counter) alone.
//
// There is no shared state to advance. So a number depends neither on the order of the draws nor on the thread or the
// machine. The generator is Philox-4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011). All functions are pure; any thread may call them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace sinew {

// 64 bits that identify a stream of numbers.
struct RandomKey {
  uint64_t value = 0;
  bool operator==(const RandomKey&) const = default;
};

// Hashes the words to a key. Different lists of words give unrelated keys.
RandomKey random_key(std::initializer_list<uint64_t> words);
// Derives a key from another key and a name ("dropout", "split") or a number.
RandomKey derive(RandomKey parent, std::string_view name);
RandomKey derive(RandomKey parent, uint64_t number);

// Returns four 32-bit words for (key, counter).
std::array<uint32_t, 4> philox(RandomKey key, uint64_t counter_low, uint64_t counter_high = 0);

// Fills `out` with the words of philox(key, 0), philox(key, 1) and so on. Vectorised.
void fill_random_bits(RandomKey key, std::span<uint32_t> out);

// Draws one number after another from one key. For code that needs only a few numbers.
class RandomStream {
 public:
  explicit RandomStream(RandomKey key) : key_(key) {}
  uint32_t bits32();
  uint64_t bits64();
  double uniform();  // [0, 1), 53 bits
  double uniform(double low, double high);
  double normal();                 // mean 0, standard deviation 1 (Box-Muller, both values used)
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
