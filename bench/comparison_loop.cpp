// Measures how members watch one another: the digest that a member makes of its own state in each step, and what the
// audit of shards adds to each step, besides computing the audited shards a second time.
//
//   comparison_loop BYTES ROUNDS      prints the mean time of one digest, and of the audits in a step, in microseconds
//
// Each digest covers one part of a state of BYTES bytes, in tensors of 1 MB. Before each digest, the program writes 32
// MB of other memory, because the shards of a step leave little of the state in a core's caches.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "base/audit.h"
#include "spec/spec.h"
#include "train/memory_parts.h"

namespace {

using namespace sinew;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

// Seconds that the audits add to a step at the default of cluster.audit: choosing the shards, and the two digests of
// the gradients of each chosen shard.
double audit_seconds(int64_t floats, int64_t rounds) {
  constexpr int64_t kShards = 8, kSteps = 10'000;
  const double fraction = spec::ClusterOptions().audit;
  int64_t chosen = 0;
  const auto began = Clock::now();
  for (int64_t step = 0; step < kSteps; ++step)
    chosen += static_cast<int64_t>(audit_of(1, Step(step), kShards, fraction).shards.size());
  const double choosing = seconds_since(began) / kSteps;
  const torch::Tensor gradient = torch::rand({floats});
  const std::span bytes(static_cast<const std::byte*>(gradient.const_data_ptr()), gradient.nbytes());
  uint64_t all = static_cast<uint64_t>(chosen);
  double digest = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    const auto digest_began = Clock::now();
    all ^= digest_of(bytes).low;
    digest += seconds_since(digest_began) / static_cast<double>(rounds);
  }
  std::fprintf(stderr, "%llx\n", static_cast<unsigned long long>(all));  // so that the digests are made
  return choosing + 2 * fraction * kShards * digest;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const int64_t floats = std::atoll(words[1]) / 4, rounds = std::atoll(words[2]);
  constexpr int64_t kMost = 1 << 18, kOther = 1 << 23;
  train::MemoryParts parts;
  for (int64_t at = 0; at < floats; at += kMost) parts.add(torch::rand({std::min(kMost, floats - at)}));
  torch::Tensor other = torch::zeros({kOther});
  double seconds = 0;
  uint64_t all = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t part = 0; part < parts.count(); ++part) {
      other.add_(1);
      const auto began = Clock::now();
      all ^= parts.digest(part).low;
      seconds += seconds_since(began);
    }
  }
  std::fprintf(stderr, "%llx\n", static_cast<unsigned long long>(all));  // so that the digests are made
  // Adam keeps two averages of each weight, so a third of the state is as large as the gradients.
  std::printf("%.3f %.3f\n", 1e6 * seconds / static_cast<double>(rounds * parts.count()),
              1e6 * audit_seconds(std::max<int64_t>(1, floats / 3), rounds));
}
