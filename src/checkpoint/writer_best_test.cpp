// Tests the Writer with best checkpoints that wait, come late or are lost, and with a slow mirror.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/faulty_disk.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

std::vector<std::function<void()>> background;  // the work of Writers that are made with by_hand

WriterOptions by_hand(int64_t keep, int64_t keep_best) {
  return {.root = kRoot,
          .mirror = "",
          .keep = keep,
          .keep_best = keep_best,
          .in_background = [](std::function<void()> work) { background.push_back(std::move(work)); }};
}

void work_off() {
  for (const auto& work : std::exchange(background, {})) work();
}

void save_now(Writer& writer, int64_t step) {
  ASSERT_TRUE(writer.submit(Sample(step).owned()));
  work_off();
}

std::string steps_in(FaultyDisk& disk, const std::string& root) {
  std::string text;
  for (const std::string& directory : list(disk, root))
    text += std::to_string(parse_step_name(base_name(directory))->value) + " ";
  return text;
}

TEST(WriterBest, AWaitingStepDoesNotReplaceTheEarlierBest) {
  FaultyDisk disk;
  Writer writer(disk, by_hand(1, 1));
  save_now(writer, 10);
  writer.set_best({Step(10)});
  work_off();
  ASSERT_TRUE(writer.submit(Sample(20).owned()));
  writer.set_best({Step(30)});  // 30 is in memory only; the disk is busy with 20
  work_off();
  EXPECT_EQ(steps_in(disk, kRoot), "10 20 ");
  EXPECT_EQ(load(disk, kRoot + "/best")->step, Step(10));
  save_now(writer, 30);
  EXPECT_EQ(steps_in(disk, kRoot), "30 ");
  EXPECT_EQ(load(disk, kRoot + "/best")->step, Step(30));
}

TEST(WriterBest, KeepsTheNewestListedStepsOnDisk) {
  FaultyDisk disk;
  for (const int64_t step : {10, 20, 30, 40}) save(disk, kRoot, Sample(step).snapshot(), 1.0);
  Writer writer(disk, by_hand(1, 2));
  writer.set_best({Step(10), Step(20), Step(25), Step(30)});  // 25 was lost
  work_off();
  save_now(writer, 50);
  EXPECT_EQ(steps_in(disk, kRoot), "20 30 50 ");
  EXPECT_EQ(load(disk, kRoot + "/best")->step, Step(30));
}

TEST(WriterBest, DeletesAnEarlierBestOnceTheNewOneIsOnDisk) {
  FaultyDisk disk;
  Writer writer(disk, by_hand(1, 3));
  save_now(writer, 10);
  writer.set_best({Step(10)});
  save_now(writer, 20);
  writer.set_best({Step(20)});
  save_now(writer, 30);
  EXPECT_EQ(steps_in(disk, kRoot), "20 30 ");
}

TEST(WriterBest, AnOlderStepThatComesLateIsNotTheNewest) {
  FaultyDisk disk;
  Writer writer(disk, by_hand(1, 1));
  save_now(writer, 20);
  writer.set_best({Step(10)});
  save_now(writer, 10);
  EXPECT_EQ(writer.status().durable, Step(20));
  EXPECT_EQ(load(disk, kRoot + "/last")->step, Step(20));
  EXPECT_EQ(load(disk, kRoot + "/best")->step, Step(10));
  EXPECT_EQ(steps_in(disk, kRoot), "10 20 ");
}

// A disk that blocks all writes to the mirror until the test calls let().
struct SlowMirror {
  SlowMirror() {
    disk.before_rename = [this](const std::string& to) { mirroring = mirroring || to.starts_with(kRoot + "/step-"); };
    disk.before_write = [this](const std::string&) {
      std::unique_lock lock(mutex);
      if (!mirroring) return;
      arrived = true;
      changed.notify_all();
      changed.wait(lock, [this] { return open; });
    };
  }
  void await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return arrived; });
  }
  void let() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  FaultyDisk disk;
  std::atomic<bool> mirroring{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool arrived = false, open = false;
};

TEST(WriterMirror, ASlowMirrorCanBeAbandoned) {
  SlowMirror slow;
  Writer writer(slow.disk, {.root = kRoot, .mirror = "mirror", .keep = 2, .keep_best = 1});
  ASSERT_TRUE(writer.submit(Sample(10).owned()));
  slow.await();
  EXPECT_EQ(writer.status().durable, Step(10));
  EXPECT_FALSE(writer.wait(0.02));
  writer.abandon_mirror();
  slow.let();
  ASSERT_TRUE(writer.wait(kLong));
  EXPECT_FALSE(writer.status().mirrored);
  EXPECT_NE(writer.status().trouble.find("mirror"), std::string::npos) << writer.status().trouble;
  EXPECT_EQ(steps_in(slow.disk, "mirror"), "");
  ASSERT_TRUE(writer.submit(Sample(20).owned()));
  ASSERT_TRUE(writer.wait(kLong));
  EXPECT_EQ(writer.status().durable, Step(20));
}

TEST(WriterMirror, AHangingMirrorDoesNotBlockTheDestructor) {
  static SlowMirror& slow = *new SlowMirror;  // never deleted, because the hanging thread outlives the test
  {
    Writer writer(slow.disk, {.root = kRoot, .mirror = "mirror", .keep = 2, .keep_best = 1, .shutdown_seconds = 0.05});
    ASSERT_TRUE(writer.submit(Sample(10).owned()));
    slow.await();
    EXPECT_EQ(writer.status().durable, Step(10));
  }
  slow.let();
}

}  // namespace
}  // namespace sinew::checkpoint
