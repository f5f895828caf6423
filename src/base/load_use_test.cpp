#include "base/load_use.h"

#include <gtest/gtest.h>

#include <ctime>
#include <set>
#include <thread>

namespace sinew {
namespace {

void compute(double seconds) {
  const std::clock_t end = std::clock() + static_cast<std::clock_t>(seconds * CLOCKS_PER_SEC);
  while (std::clock() < end) {
  }
}

TEST(LoadWatch, CountsEachPieceOnce) {
  LoadUse use;
  {
    LoadWatch batch(use);
    for (int i = 0; i < 3; ++i) {
      LoadWatch sample(use);
      sample.ended(LoadStage::read);
      compute(0.01);
      sample.ended(LoadStage::decode);
    }
    compute(0.02);
    batch.rest(LoadStage::copy);
  }
  EXPECT_GE(use[LoadStage::decode], 0.02);
  EXPECT_GE(use[LoadStage::copy], 0.01);
  EXPECT_EQ(use[LoadStage::augment], 0);
  EXPECT_NEAR(use.cpu(), use[LoadStage::read] + use[LoadStage::decode] + use[LoadStage::copy], 1e-12);
  EXPECT_LT(use[LoadStage::read], use[LoadStage::decode]);
}

TEST(LoadWatch, WaitingIsNoCpuTime) {
  LoadUse use;
  LoadWatch watch(use);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  watch.ended(LoadStage::read);
  EXPECT_GE(use.read_seconds, 0.05);
  EXPECT_LT(use[LoadStage::read], 0.04);
}

TEST(LoadUse, SumsKeepTheThreads) {
  LoadUse all{.threads = 3, .samples = 1, .read_bytes = 10};
  LoadUse one{.threads = 9, .read_seconds = 0.5, .samples = 4, .read_bytes = 100};
  one[LoadStage::augment] = 2;
  all += one;
  EXPECT_EQ(all.threads, 3);
  EXPECT_EQ(all.samples, 5);
  EXPECT_EQ(all.read_bytes, 110);
  EXPECT_EQ(all.read_seconds, 0.5);
  EXPECT_EQ(all.cpu(), 2);
}

TEST(LoadUse, EachStageHasAName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kLoadStages; ++i) names.insert(name_of(static_cast<LoadStage>(i)));
  EXPECT_EQ(names.size(), kLoadStages);
}

}  // namespace
}  // namespace sinew
