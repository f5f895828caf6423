#include "data/loader_threads.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace sinew::data {
namespace {

// A source that serves so many samples a second to each thread, and at most `limit` in all.
LoadWindow window_of(int64_t threads, double each, double limit, double wanted = 1e9) {
  const double rate = std::min({static_cast<double>(threads) * each, limit, wanted});
  LoadWindow window{.seconds = 2};
  window.use.samples = static_cast<int64_t>(2 * rate);
  window.use.read_seconds = 2 * static_cast<double>(threads);
  window.use[LoadStage::decode] = 0.1;
  window.waited_seconds = rate < wanted ? 1.5 : 0;
  return window;
}

TEST(LoaderThreads, GrowsWhileMoreSamplesCome) {
  LoaderThreads threads(2, 32);
  for (int i = 0; i < 10; ++i) threads.after(window_of(threads.threads(), 50, 1e9));
  EXPECT_EQ(threads.threads(), 32);
}

TEST(LoaderThreads, GoesBackIfTheSourceIsAtItsLimit) {
  LoaderThreads threads(2, 64);
  int64_t windows_above = 0;
  for (int i = 0; i < 500; ++i) {
    threads.after(window_of(threads.threads(), 50, 400));
    windows_above += threads.threads() > 8 ? 1 : 0;
  }
  EXPECT_EQ(threads.threads(), 8);  // 8 threads reach the limit
  EXPECT_GT(windows_above, 1) << "it tries again, because a source may have become faster";
  EXPECT_LT(windows_above, 12);
}

TEST(LoaderThreads, StopsOnceTheLanesDoNotWait) {
  LoaderThreads threads(2, 64);
  for (int i = 0; i < 50; ++i) threads.after(window_of(threads.threads(), 50, 1e9, 350));
  EXPECT_EQ(threads.threads(), 8);
}

TEST(LoaderThreads, ThreadsThatDecodeAreNotMore) {
  LoaderThreads threads(2, 64);
  for (int i = 0; i < 50; ++i) {
    LoadWindow window = window_of(threads.threads(), 50, 1e9);
    window.use[LoadStage::decode] = window.use.read_seconds;
    threads.after(window);
  }
  EXPECT_EQ(threads.threads(), 2);
}

TEST(LoaderThreads, StaysWithinItsBounds) {
  RandomStream random(random_key({3}));
  for (int trial = 0; trial < 200; ++trial) {
    const auto begin = static_cast<int64_t>(random.below(4)), most = begin + static_cast<int64_t>(random.below(30));
    LoaderThreads threads(begin, most);
    for (int i = 0; i < 100; ++i) {
      threads.after(
          window_of(threads.threads(), random.uniform() * 100, random.uniform() * 1000, random.uniform() * 1000));
      ASSERT_GE(threads.threads(), begin);
      ASSERT_LE(threads.threads(), most);
    }
  }
}

}  // namespace
}  // namespace sinew::data
