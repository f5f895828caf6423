#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "data/data.h"

namespace sinew::data {
namespace {

// A data set that counts its loads. A test can make it block all loads, or make loads of val fail.
class Counting final : public Dataset {
 public:
  explicit Counting(int64_t size) {
    info_.input_shape = {100};
    info_.train_size = size;
  }
  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return split == Split::train ? info_.train_size : 50; }
  std::string describe(Split, int64_t sample) const override { return std::to_string(sample); }
  bool in_memory() const override { return false; }
  Batch load(Split split, std::span<const int64_t> samples, const SampleContext& context) const override {
    {
      std::unique_lock lock(mutex);
      ++begun;
      changed.notify_all();
      changed.wait(lock, [&] { return open; });
    }
    if (fail && split == Split::val) throw Error("TEST_VAL_FAILS", "val is broken", "");
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    batch.input = Array(DType::f32, {batch.count(), 100});
    batch.target = Array(DType::i64, {batch.count()});
    for (int64_t i = 0; i < batch.input.count(); ++i)
      batch.input.as<float>()[i] = static_cast<float>(samples[static_cast<size_t>(i / 100)]);
    for (int64_t i = 0; i < batch.count(); ++i)
      batch.target.as<int64_t>()[i] = context.epoch * 2 + (context.augment ? 1 : 0);
    return batch;
  }
  void wait_until_begun(int64_t count) const {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return begun >= count; });
  }
  void set_open(bool value) {
    const std::lock_guard lock(mutex);
    open = value;
    changed.notify_all();
  }
  int64_t begun_count() const {
    const std::lock_guard lock(mutex);
    return begun;
  }
  std::atomic<bool> fail = false;

 private:
  DataInfo info_;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  mutable int64_t begun = 0;
  bool open = true;
};

constexpr int64_t kRow = 100 * 4 + 8 + 8;

void expect_right(const Batch& batch, const ShardRequest& request, const Dataset& dataset, uint64_t seed) {
  ASSERT_EQ(batch.count(), request.count);
  const Permutation order = epoch_order(seed, request.epoch, dataset.size(Split::train));
  for (int64_t i = 0; i < request.count; ++i) {
    const int64_t position = request.first + i;
    const int64_t sample = request.split == Split::train ? order[position] : position;
    ASSERT_EQ(batch.samples[static_cast<size_t>(i)], sample);
    ASSERT_EQ(batch.input.as<float>()[i * 100 + 99], static_cast<float>(sample));
    ASSERT_EQ(batch.target.as<int64_t>()[i], request.epoch * 2 + (request.split == Split::train ? 1 : 0));
  }
}

std::vector<ShardRequest> requests_of(int64_t epoch, int64_t size, int64_t each) {
  std::vector<ShardRequest> requests;
  for (int64_t first = 0; first < size; first += each)
    requests.push_back({Split::train, epoch, first, std::min(each, size - first)});
  return requests;
}

TEST(Prefetcher, ReturnsTheRightShardWhicheverThreadLoadsIt) {
  for (const int64_t threads : {0, 1, 3}) {
    for (const int64_t bytes : {int64_t{0}, 30 * kRow, int64_t{1} << 30}) {
      Counting dataset(1000);
      Prefetcher prefetcher(dataset, 7, threads, bytes);
      std::vector<ShardRequest> all;
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        const auto more = requests_of(epoch, 1000, 7);
        prefetcher.prefetch(more);
        all.insert(all.end(), more.begin(), more.end());
      }
      std::atomic<size_t> next = 0;
      std::vector<std::thread> lanes;
      for (int lane = 0; lane < 3; ++lane) {
        lanes.emplace_back([&] {
          for (size_t i = next++; i < all.size(); i = next++) expect_right(prefetcher.take(all[i]), all[i], dataset, 7);
        });
      }
      for (std::thread& lane : lanes) lane.join();
      EXPECT_EQ(dataset.begun_count(), static_cast<int64_t>(all.size()));  // no shard was loaded twice
    }
  }
}

TEST(Prefetcher, UnexpectedAndRepeatedRequestsAreServed) {
  Counting dataset(100);
  Prefetcher prefetcher(dataset, 1, 2, 1 << 20);
  const ShardRequest one{Split::val, 0, 5, 10}, two{Split::train, 4, 0, 20};
  prefetcher.prefetch({one, one, one});
  for (int i = 0; i < 5; ++i) expect_right(prefetcher.take(one), one, dataset, 1);
  expect_right(prefetcher.take(two), two, dataset, 1);
  EXPECT_EQ(prefetcher.take({Split::train, 0, 0, 0}).count(), 0);
}

TEST(Prefetcher, HoldsNoMoreThanItsBound) {
  Counting dataset(1000);
  Prefetcher prefetcher(dataset, 1, 4, 35 * kRow);
  const auto all = requests_of(0, 1000, 10);
  prefetcher.prefetch(all);
  dataset.wait_until_begun(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(dataset.begun_count(), 3);  // a fourth load would hold 40 rows in all
  prefetcher.take(all[0]);
  dataset.wait_until_begun(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(dataset.begun_count(), 4);
  // A shard that is larger than the bound does not block the shards after it.
  prefetcher.clear();
  prefetcher.prefetch({{Split::train, 1, 0, 500}, {Split::train, 1, 500, 10}});
  dataset.wait_until_begun(5);
  EXPECT_EQ(prefetcher.take({Split::train, 1, 0, 500}).count(), 500);
}

TEST(Prefetcher, WaitsForAnnouncedShardsButNotForWhatCannotBeLoaded) {
  Counting dataset(1000);
  Prefetcher prefetcher(dataset, 1, 2, 35 * kRow);
  const auto all = requests_of(0, 1000, 10);
  EXPECT_TRUE(prefetcher.wait_for(all, 0)) << "nothing was announced";
  prefetcher.prefetch(all);
  EXPECT_TRUE(prefetcher.wait_for({all[0], all[1], all[2]}, 60));
  EXPECT_EQ(dataset.begun_count(), 3);
  EXPECT_FALSE(prefetcher.wait_for({all[3]}, 60)) << "there is no memory for it before a shard is taken";
  prefetcher.clear();
  dataset.set_open(false);
  prefetcher.prefetch({all[4]});
  EXPECT_FALSE(prefetcher.wait_for({all[4]}, 0.01)) << "it takes longer than that";
  dataset.set_open(true);
  EXPECT_TRUE(prefetcher.wait_for({all[4]}, 60));
  expect_right(prefetcher.take(all[4]), all[4], dataset, 1);
}

TEST(Prefetcher, LoadsWithAsManyThreadsAsItIsTold) {
  Counting dataset(1000);
  dataset.set_open(false);
  Prefetcher prefetcher(dataset, 1, 1, 1 << 20);
  const auto all = requests_of(0, 1000, 10);
  prefetcher.prefetch(all);
  dataset.wait_until_begun(1);
  prefetcher.use_threads(3);
  dataset.wait_until_begun(3);
  EXPECT_EQ(prefetcher.use().threads, 3);
  Prefetcher without(dataset, 1, 0, 1 << 20);
  without.use_threads(3);
  EXPECT_EQ(without.use().threads, 0) << "it has none and gets none";
  prefetcher.use_threads(1);
  dataset.set_open(true);
  for (const ShardRequest& request : all) expect_right(prefetcher.take(request), request, dataset, 1);
  EXPECT_EQ(prefetcher.use().threads, 1);
}

TEST(Prefetcher, TheCallerLoadsAShardThatNoThreadBegan) {
  Counting dataset(100);
  dataset.set_open(false);
  Prefetcher prefetcher(dataset, 1, 1, 1 << 20);
  const auto all = requests_of(0, 100, 10);
  prefetcher.prefetch(all);
  dataset.wait_until_begun(1);  // the only thread waits in the first load
  std::thread taker([&] { expect_right(prefetcher.take(all[5]), all[5], dataset, 1); });
  dataset.wait_until_begun(2);  // the second load can only come from `taker`
  dataset.set_open(true);
  taker.join();
  for (const size_t i : {0, 1, 2, 3, 4, 6, 7, 8, 9}) expect_right(prefetcher.take(all[i]), all[i], dataset, 1);
  EXPECT_EQ(dataset.begun_count(), 10);
}

TEST(Prefetcher, ErrorsReachOnlyTheCaller) {
  Counting dataset(100);
  dataset.fail = true;
  Prefetcher prefetcher(dataset, 1, 2, 1 << 20);
  const ShardRequest bad{Split::val, 0, 0, 5}, good{Split::train, 0, 0, 5};
  prefetcher.prefetch({bad, good});
  dataset.wait_until_begun(2);
  EXPECT_THROW(prefetcher.take(bad), Error);
  expect_right(prefetcher.take(good), good, dataset, 1);
  EXPECT_THROW(prefetcher.take(bad), Error);  // this time the caller loads it
  dataset.fail = false;
  expect_right(prefetcher.take(bad), bad, dataset, 1);
}

TEST(Prefetcher, ClearDropsAnnouncedShardsButNotClaimedOnes) {
  Counting dataset(100);
  dataset.set_open(false);
  Prefetcher prefetcher(dataset, 1, 2, 1 << 20);
  const auto all = requests_of(0, 100, 10);
  prefetcher.prefetch(all);
  dataset.wait_until_begun(2);
  std::thread taker([&] { expect_right(prefetcher.take(all[0]), all[0], dataset, 1); });
  std::this_thread::sleep_for(
      std::chrono::milliseconds(20));  // most likely `taker` waits by now; the test holds either way
  prefetcher.clear();
  dataset.set_open(true);
  taker.join();
  const auto next = requests_of(1, 100, 10);
  prefetcher.prefetch(next);
  for (const ShardRequest& request : next) expect_right(prefetcher.take(request), request, dataset, 1);
  EXPECT_LE(dataset.begun_count(), 13);
}

TEST(Prefetcher, DestructorEndsWithWorkLeft) {
  for (int i = 0; i < 50; ++i) {
    Counting dataset(10000);
    Prefetcher prefetcher(dataset, 1, 3, 1 << 30);
    prefetcher.prefetch(requests_of(0, 10000, 3));
    if (i % 2 == 0) prefetcher.take({Split::train, 0, 0, 3});
  }
}

TEST(Prefetcher, ManyThreadsAnnounceTakeAndClear) {
  Counting dataset(500);
  Prefetcher prefetcher(dataset, 3, 3, 60 * kRow);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      RandomStream draws(random_key({t}));
      for (int i = 0; i < 400; ++i) {
        const ShardRequest request{draws.below(2) == 0 ? Split::train : Split::val,
                                   static_cast<int64_t>(draws.below(3)), static_cast<int64_t>(draws.below(30)),
                                   static_cast<int64_t>(draws.below(20))};
        const auto what = draws.below(10);
        if (what < 4) prefetcher.prefetch({request, request});
        if (what == 4 && i % 7 == 0) prefetcher.clear();
        if (what > 4) expect_right(prefetcher.take(request), request, dataset, 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(prefetcher.waited_seconds(), 0);
}

// A data set on a disk that takes a while to answer, and answers any number of threads.
class Slow final : public Dataset {
 public:
  Slow() { info_.input_shape = {1}; }
  const DataInfo& info() const override { return info_; }
  int64_t size(Split) const override { return 1 << 20; }
  std::string describe(Split, int64_t) const override { return ""; }
  bool in_memory() const override { return false; }
  Batch load(Split, std::span<const int64_t> samples, const SampleContext&) const override {
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    batch.input = Array(DType::f32, {batch.count(), 1});
    batch.target = Array(DType::i64, {batch.count()});
    LoadWatch watch(batch.use);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    watch.ended(LoadStage::read);
    return batch;
  }

 private:
  DataInfo info_;
};

// Takes loaded samples until `done` says so, for a bounded time.
void take_until(Prefetcher& prefetcher, const std::function<bool()>& done) {
  for (int64_t first = 0; first < 20000 && !done(); first += 32) {
    std::vector<ShardRequest> requests;
    for (int64_t i = 0; i < 32; ++i) requests.push_back({Split::val, 0, first + i, 1, false});
    prefetcher.prefetch(requests);
    for (const ShardRequest& request : requests) prefetcher.take(request);
  }
}

TEST(Prefetcher, LoadsWithMoreThreadsIfTheyWaitForFiles) {
  const Slow data;
  Prefetcher prefetcher(data, 1, 1, 1 << 20, {.most_threads = 8, .window_seconds = 0.2});
  take_until(prefetcher, [&] { return prefetcher.use().threads >= 4; });
  EXPECT_GE(prefetcher.use().threads, 4);
  Prefetcher fixed(data, 1, 1, 1 << 20);
  int windows = 0;
  take_until(fixed, [&] { return ++windows > 10; });
  EXPECT_EQ(fixed.use().threads, 1);
}

}  // namespace
}  // namespace sinew::data
