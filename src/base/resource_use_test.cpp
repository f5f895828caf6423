#include "base/resource_use.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace sinew {
namespace {

TEST(ResourceUse, CountsTheTimeOfAllThreads) {
  const ResourceUse before = resource_use();
  Clock& clock = system_clock();
  const double end = clock.monotonic_seconds() + 0.2;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (clock.monotonic_seconds() < end) {
      }
    });
  }
  threads.clear();
  const ResourceUse used = between(before, resource_use());
  EXPECT_GT(used.cpu_seconds, 0);
  EXPECT_GE(used.queued_seconds, 0);
  EXPECT_GE(used.throttled_seconds, 0);
}

TEST(ResourceUse, KnowsThePeakOfMemory) {
  constexpr size_t kBytes = size_t{64} << 20;
  {
    std::vector<char> large(kBytes);
    for (size_t i = 0; i < kBytes; i += 4096) large[i] = 1;
    EXPECT_EQ(large[4096], 1);
  }
  EXPECT_GE(resource_use().peak_memory_bytes, static_cast<int64_t>(kBytes));
}

}  // namespace
}  // namespace sinew
