#include "base/resource_use.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>
#include <vector>

namespace sinew {
namespace {

TEST(ResourceUse, CountsTheTimeOfAllThreads) {
  const ResourceUse before = resource_use();
  constexpr double kEach = 0.1;  // CPU time of each thread
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      timespec used{};
      while (static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec) < kEach)
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    });
  }
  threads.clear();
  const ResourceUse used = between(before, resource_use());
  EXPECT_GE(used.cpu_seconds, 2.9 * kEach);
  EXPECT_GE(used.cores, 1e-3);
}

TEST(ResourceUse, RatesAreOfTheTimeBetween) {
  const ResourceUse used = between({.seconds = 10, .network = {.sent_bytes = 100, .received_bytes = 5}},
                                   {.seconds = 14, .network = {.sent_bytes = 900, .received_bytes = 5}});
  EXPECT_EQ(used.network, (NetworkUse{.sent_bytes = 800, .received_bytes = 0}));
  EXPECT_EQ(used.a_second(used.network.sent_bytes), 200);
  EXPECT_EQ(ResourceUse().a_second(7), 0) << "no time has passed";
}

TEST(ResourceUse, AnEarlierUseThatWasHigherLeavesNothingNegative) {
  // Threads that waited for a core may have ended, and a control group may have been replaced.
  const ResourceUse used = between({.queued_seconds = 3, .throttled_seconds = 4}, {.queued_seconds = 1});
  EXPECT_EQ(used.queued_seconds, 0);
  EXPECT_EQ(used.throttled_seconds, 0);
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
