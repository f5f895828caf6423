// Measures the cost of comparing states: the time of the digest that a member makes of its own state in each step.
//
//   comparison_loop BYTES ROUNDS      prints the mean time of one digest, in microseconds
//
// Each digest covers one part of a state of BYTES bytes, in tensors of 1 MB. Before each digest, the program writes 32
// MB of other memory, because the shards of a step leave little of the state in a core's caches.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "train/memory_parts.h"

int main(int count, char** words) {
  using namespace sinew;
  if (count != 3) return 2;
  const int64_t floats = std::atoll(words[1]) / 4, rounds = std::atoll(words[2]);
  constexpr int64_t kMost = 1 << 18, kOther = 1 << 23;
  train::MemoryParts parts;
  for (int64_t at = 0; at < floats; at += kMost) parts.add(torch::rand({std::min(kMost, floats - at)}));
  torch::Tensor other = torch::zeros({kOther});
  using Clock = std::chrono::steady_clock;
  double seconds = 0;
  uint64_t all = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t part = 0; part < parts.count(); ++part) {
      other.add_(1);
      const auto began = Clock::now();
      all ^= parts.digest(part).low;
      seconds += std::chrono::duration<double>(Clock::now() - began).count();
    }
  }
  std::fprintf(stderr, "%llx\n", static_cast<unsigned long long>(all));  // so that the digests are made
  std::printf("%.3f\n", 1e6 * seconds / static_cast<double>(rounds * parts.count()));
}
