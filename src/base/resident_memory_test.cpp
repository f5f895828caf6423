#include "base/resident_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace sinew {
namespace {

TEST(ResidentMemoryTest, ReadsWhatTheKernelTells) {
  constexpr int64_t kKiB = 1024;
  const ResidentMemory read = resident_memory(
      "Name:\tsinew-worker\nVmHWM:\t  300000 kB\nRssAnon:\t  100000 kB\nRssFile:\t  150000 kB\n"
      "RssShmem:\t    2000 kB\nVmData:\t  400000 kB\n");
  EXPECT_EQ(read.peak, 300'000 * kKiB);
  EXPECT_EQ(read.files, 150'000 * kKiB);
  EXPECT_EQ(read.held, 102'000 * kKiB);
  EXPECT_EQ(read.data_space, 400'000 * kKiB);
  EXPECT_EQ(resident_memory("").peak, 0);
}

TEST(ResidentMemoryTest, ThisProcessIsMeasured) {
  const ResidentMemory before = resident_memory();
  const std::vector<char> block(64 << 20, 1);
  const ResidentMemory now = resident_memory();
  EXPECT_GE(now.held - before.held, 60 << 20) << block.size();
  EXPECT_GE(now.peak, now.held);
  EXPECT_GT(now.data_space, 0);
}

}  // namespace
}  // namespace sinew
