#include <gtest/gtest.h>
#include <malloc.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/faulty_disk.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

class SetClock final : public Clock {
 public:
  double monotonic_seconds() const override { return 0; }
  double wall_seconds() const override { return 1763694902.25; }
  void sleep_seconds(double) override {}
};

// Blocks every write while it is closed. So a test can make the disk as slow as it needs, without a clock.
class WriteBlocker {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void await_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int arrived_ = 0;
};

std::string present(FaultyDisk& disk, const std::string& root) {
  std::string text;
  for (const std::string& directory : list(disk, root))
    text += std::to_string(parse_step_name(base_name(directory))->value) + " ";
  return text;
}

TEST(Writer, SavesVerifiesPointsAndKeeps) {
  FaultyDisk disk;
  SetClock clock;
  Writer writer(disk, {kRoot, "", 2, 1}, clock);
  EXPECT_TRUE(writer.ready());
  EXPECT_FALSE(writer.status().durable);
  for (const int64_t step : {10, 20, 30, 40}) {
    save_and_wait(writer, step);
    if (step == 20) writer.set_best({Step(20)});
    ASSERT_TRUE(writer.wait(kLong));
    EXPECT_EQ(writer.status().durable, Step(step));
    EXPECT_EQ(writer.status().trouble, "");
  }
  EXPECT_EQ(writer.status().durable_wall_seconds, 1763694902.25);
  EXPECT_EQ(writer.status().skipped, 0);
  EXPECT_FALSE(writer.status().writing);
  EXPECT_EQ(present(disk, kRoot), "20 30 40 ");
  EXPECT_EQ(load(disk, kRoot + "/last")->step, Step(40));
  EXPECT_EQ(load(disk, kRoot + "/best")->step, Step(20));
  EXPECT_TRUE(Sample(40).equals(*load_newest(disk, kRoot).loaded));
}

TEST(Writer, KeepsOnlyTheNewestOfTheBest) {
  FaultyDisk disk;
  Writer writer(disk, {kRoot, "", 1, 2});
  for (const int64_t step : {10, 20, 30, 40, 50}) {
    save_and_wait(writer, step);
    if (step == 30) writer.set_best({Step(30), Step(10), Step(20)});
  }
  EXPECT_TRUE(writer.wait(kLong));
  EXPECT_EQ(present(disk, kRoot), "30 50 ");  // 10 and 20 were deleted before set_best, when 30 was the newest
  EXPECT_EQ(load(disk, kRoot + "/best")->step, Step(30));
}

TEST(Writer, NeverBlocksTheStepThreadOnASlowDisk) {
  FaultyDisk disk;
  WriteBlocker blocker;
  disk.before_write = [&](const std::string&) { blocker.pass(); };
  Writer writer(disk, {kRoot, "", 2, 1});
  blocker.set(false);
  ASSERT_TRUE(writer.submit(Sample(10).owned()));
  // The disk blocks from here until the blocker opens. So calls that return do not wait for the disk.
  blocker.await_arrival();
  EXPECT_FALSE(writer.ready());
  EXPECT_EQ(writer.status().writing, Step(10));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(writer.submit(Sample(20 + i).owned()));
  EXPECT_EQ(writer.status().skipped, 5);
  writer.set_best({Step(10)});
  EXPECT_FALSE(writer.wait(0.02));
  EXPECT_FALSE(writer.status().durable);
  blocker.set(true);
  EXPECT_TRUE(writer.wait(kLong));
  EXPECT_EQ(writer.status().durable, Step(10));
  save_and_wait(writer, 30);
  EXPECT_EQ(writer.status().durable, Step(30));
  EXPECT_EQ(writer.status().skipped, 5);
}

// While the Writer moves links, mirrors or deletes, it holds no snapshot. So it accepts exactly one new snapshot.
TEST(Writer, RefusesASnapshotOnlyWhileItHoldsAnother) {
  const std::map<std::string, std::string> stuck_at = {{"pointing last", kRoot + "/last"},
                                                       {"pointing best", kRoot + "/best"},
                                                       {"mirroring", "mirror/step-00000020"},
                                                       {"deleting", kRoot + "/.removed-step-00000010"}};
  for (const auto& [doing, path] : stuck_at) {
    FaultyDisk disk;
    WriteBlocker blocker;
    Writer writer(disk, {kRoot, "mirror", 1, 1});
    save_and_wait(writer, 10);
    disk.before_rename = [&, &path = path](const std::string& to) {
      if (to.starts_with(path)) blocker.pass();
    };
    writer.set_best({Step(20)});
    ASSERT_TRUE(writer.wait(kLong));
    blocker.set(false);
    ASSERT_TRUE(writer.submit(Sample(20).owned()));
    blocker.await_arrival();
    EXPECT_EQ(writer.status().durable, Step(20)) << doing;
    EXPECT_FALSE(writer.status().writing) << doing;
    EXPECT_TRUE(writer.ready()) << doing;
    EXPECT_TRUE(writer.submit(Sample(30).owned())) << doing;
    EXPECT_EQ(writer.status().writing, Step(30)) << doing;
    EXPECT_FALSE(writer.ready()) << doing;
    EXPECT_FALSE(writer.submit(Sample(40).owned())) << doing;
    EXPECT_FALSE(writer.wait(0));
    blocker.set(true);
    ASSERT_TRUE(writer.wait(kLong));
    EXPECT_EQ(writer.status().durable, Step(30)) << doing;
    EXPECT_EQ(writer.status().skipped, 1) << doing;
    EXPECT_EQ(writer.status().trouble, "") << doing;
  }
}

TEST(Writer, MovingBestRefusesNoSnapshot) {
  FaultyDisk disk;
  WriteBlocker blocker;
  Writer writer(disk, {kRoot, "", 2, 1});
  save_and_wait(writer, 10);
  disk.before_rename = [&](const std::string&) { blocker.pass(); };
  blocker.set(false);
  writer.set_best({Step(10)});
  blocker.await_arrival();
  EXPECT_TRUE(writer.ready());
  EXPECT_FALSE(writer.wait(0)) << "it is not idle all the same";
  EXPECT_TRUE(writer.submit(Sample(20).owned()));
  blocker.set(true);
  ASSERT_TRUE(writer.wait(kLong));
  EXPECT_EQ(writer.status().durable, Step(20));
  EXPECT_EQ(writer.status().skipped, 0);
  EXPECT_FALSE(writer.status().writing);
}

TEST(Writer, HoldsAtMostOneSnapshot) {
  const auto in_use = [] {
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<int64_t>(info.uordblks + info.hblkhd);
  };
  constexpr int64_t kBig = 32 << 20;
  const auto snapshot = [&](int64_t step) {
    OwnedSnapshot owned{Step(step), {}, "{}", {}};
    Buffer buffer(kBig);
    std::fill_n(buffer.data(), kBig, std::byte{7});
    owned.parts["model"].emplace_back(TensorEntry{"w", DType::u8, {kBig}, 0, 0}, std::move(buffer));
    return owned;
  };
  const int64_t empty = in_use();
  {
    const OwnedSnapshot probe = snapshot(0);
    if (in_use() - empty < kBig) GTEST_SKIP() << "this allocator does not tell";
  }
  FaultyDisk disk;
  WriteBlocker blocker;
  disk.before_write = [&](const std::string&) { blocker.pass(); };
  Writer writer(disk, {kRoot, "", 1, 0});
  blocker.set(false);
  const int64_t before = in_use();
  ASSERT_TRUE(writer.submit(snapshot(10)));
  blocker.await_arrival();
  for (int64_t i = 0; i < 8; ++i) writer.submit(snapshot(20 + i));
  EXPECT_LT(in_use() - before, kBig * 5 / 4);
  blocker.set(true);
  EXPECT_TRUE(writer.wait(kLong));
}

TEST(Writer, ReportsTroubleAndTriesAgain) {
  for (const int code : {ENOSPC, EIO, EDQUOT}) {
    FaultyDisk disk;
    Writer writer(disk, {kRoot, "", 2, 1});
    save_and_wait(writer, 10);
    disk.fail_at(12, code);
    save_and_wait(writer, 20);
    const WriterStatus bad = writer.status();
    EXPECT_NE(bad.trouble.find("injected failure"), std::string::npos) << bad.trouble;
    EXPECT_NE(bad.trouble.find("a hint"), std::string::npos) << bad.trouble;
    EXPECT_EQ(bad.durable, Step(10));
    EXPECT_TRUE(writer.ready());
    save_and_wait(writer, 30);
    EXPECT_EQ(writer.status().trouble, "");
    EXPECT_EQ(writer.status().durable, Step(30));
  }
}

TEST(Writer, ADiskWithRoomForTheKeptCheckpointsOnlyGetsTheNextOne) {
  FaultyDisk disk;
  SetClock clock;  // all checkpoints have the same size then
  Writer writer(disk, {kRoot, "", 2, 1}, clock);
  save_and_wait(writer, 10);
  writer.set_best({Step(10)});
  save_and_wait(writer, 20);
  save_and_wait(writer, 30);
  EXPECT_EQ(present(disk, kRoot), "10 20 30 ");
  disk.set_capacity(disk.used());
  save_and_wait(writer, 40);
  EXPECT_EQ(writer.status().trouble, "");
  EXPECT_EQ(present(disk, kRoot), "10 30 40 ");  // 20 went first; the best and the newest stayed
  disk.set_capacity(0);
  save_and_wait(writer, 50);
  EXPECT_NE(writer.status().trouble.find("the disk is full"), std::string::npos) << writer.status().trouble;
  EXPECT_EQ(present(disk, kRoot), "10 40 ");  // the best and the newest are never deleted
  disk.set_capacity(uint64_t{1} << 40);
  save_and_wait(writer, 60);
  EXPECT_EQ(writer.status().trouble, "");
  EXPECT_EQ(load(disk, kRoot + "/last")->step, Step(60));
}

TEST(Writer, DeletesNothingIfReadingBackFails) {
  for (int64_t sync = 1; sync <= 4; ++sync) {  // the syncs of two parts, the state and the manifest
    FaultyDisk disk;
    Writer writer(disk, {kRoot, "", 1, 0});
    save_and_wait(writer, 10);
    disk.flip_media_bit_at_file_sync(sync);
    save_and_wait(writer, 20);
    EXPECT_NE(writer.status().trouble.find("[CHECKPOINT_NOT_READ_BACK]"), std::string::npos) << writer.status().trouble;
    EXPECT_EQ(writer.status().durable, Step(10));
    EXPECT_TRUE(Sample(10).equals(*load_newest(disk, kRoot).loaded));
    save_and_wait(writer, 30);
    EXPECT_EQ(present(disk, kRoot), "20 30 ") << "bad ones neither count nor go";
    EXPECT_EQ(writer.status().durable, Step(30));
  }
}

TEST(Writer, DamagedStepsDoNotCountAsKept) {
  FaultyDisk disk;
  for (const int64_t step : {10, 20, 30}) save(disk, kRoot, Sample(step).snapshot(), 1.0);
  disk.raw(kRoot +
           "/step-00000030/model.safetensors")[3000 % disk.raw(kRoot + "/step-00000030/model.safetensors").size()] ^=
      std::byte{1};
  Writer writer(disk, {kRoot, "", 2, 0});
  save_and_wait(writer, 40);
  EXPECT_EQ(present(disk, kRoot), "20 30 40 ");
}

TEST(Writer, AMirrorErrorDoesNotFailTheSave) {
  FaultyDisk disk;
  disk.make_directories("far");
  Writer writer(disk, {kRoot, "far/mirror", 2, 0});
  save_and_wait(writer, 10);
  EXPECT_EQ(writer.status().trouble, "");
  EXPECT_EQ(writer.status().mirrored, Step(10));
  EXPECT_TRUE(Sample(10).equals(*load(disk, "far/mirror/step-00000010")));
  disk.remove_all("far/mirror");
  disk.create("far/mirror")->close();  // a file where the mirror's directory should be
  save_and_wait(writer, 20);
  EXPECT_EQ(writer.status().durable, Step(20));
  EXPECT_EQ(writer.status().mirrored, Step(10));
  EXPECT_NE(writer.status().trouble.find("mirror"), std::string::npos) << writer.status().trouble;
  disk.remove_all("far/mirror");
  for (const int64_t step : {30, 40, 50}) save_and_wait(writer, step);
  EXPECT_EQ(writer.status().trouble, "");
  EXPECT_EQ(present(disk, "far/mirror"), "40 50 ");
}

TEST(Writer, ReportsADamagedCopyInTheMirror) {
  FaultyDisk disk;
  Writer writer(disk, {kRoot, "mirror", 2, 0});
  save_and_wait(writer, 10);
  disk.flip_media_bit_at_file_sync(6);  // four files in root, then the second file in the mirror
  save_and_wait(writer, 20);
  EXPECT_EQ(writer.status().durable, Step(20));
  EXPECT_EQ(writer.status().mirrored, Step(10));
  EXPECT_NE(writer.status().trouble.find("[CHECKPOINT_NOT_READ_BACK]"), std::string::npos) << writer.status().trouble;
}

// Kills the process at every disk call of a whole cycle that keeps one checkpoint. The cycle includes links and
// deletion.
TEST(Writer, ADeathAtAnyCallLeavesTheNewestOrThePrevious) {
  const auto cycle = [](FaultyDisk& disk) {
    Writer writer(disk, {kRoot, "mirror", 1, 0});
    EXPECT_TRUE(writer.submit(Sample(20).owned()));
    EXPECT_TRUE(writer.wait(kLong));
  };
  const auto prepare = [](FaultyDisk& disk) {
    Writer writer(disk, {kRoot, "mirror", 1, 0});
    save_and_wait(writer, 10);
  };
  FaultyDisk probe;
  prepare(probe);
  const int64_t before = probe.calls();
  cycle(probe);
  const int64_t calls = probe.calls() - before;
  EXPECT_EQ(present(probe, kRoot), "20 ");
  EXPECT_EQ(present(probe, "mirror"), "20 ");
  for (int64_t k = 1; k <= calls; ++k) {
    for (uint64_t fate = 0; fate < 6; ++fate) {
      FaultyDisk disk;
      prepare(disk);
      disk.stop_world_at(k, fate % 2 == 0 ? FaultyDisk::When::before : FaultyDisk::When::after);
      cycle(disk);
      disk.crash(random_key({fate, static_cast<uint64_t>(k)}), fate == 1);
      for (const std::string& root : {kRoot, std::string("mirror")}) {
        const Newest newest = load_newest(disk, root);
        ASSERT_TRUE(newest.loaded) << "call " << k << " fate " << fate << " " << root;
        ASSERT_TRUE(Sample(newest.loaded->step.value).equals(*newest.loaded));
        ASSERT_TRUE(newest.damaged.empty()) << "call " << k << " fate " << fate << " " << newest.damaged[0].what;
      }
    }
  }
}

TEST(Writer, ContinuesAfterAFailureAtAnyCall) {
  FaultyDisk probe;
  {
    Writer writer(probe, {kRoot, "mirror", 1, 0});
    save_and_wait(writer, 10);
  }
  const int64_t calls = probe.calls();
  for (int64_t k = 1; k <= calls; ++k) {
    FaultyDisk disk;
    save(disk, kRoot, Sample(5).snapshot(), 1.0);
    Writer writer(disk, {kRoot, "mirror", 1, 0});
    disk.fail_at(k, EIO);
    save_and_wait(writer, 10);
    const Newest newest = load_newest(disk, kRoot);
    ASSERT_TRUE(newest.loaded) << k;
    if (writer.status().durable) {
      ASSERT_EQ(newest.loaded->step, Step(10));
    } else {
      ASSERT_NE(writer.status().trouble, "") << k;
    }
    save_and_wait(writer, 20);
    ASSERT_EQ(writer.status().durable, Step(20)) << writer.status().trouble;
    ASSERT_EQ(writer.status().mirrored, Step(20)) << writer.status().trouble;
  }
}

TEST(Writer, TheDestructorFinishesTheSnapshotUnderWay) {
  FaultyDisk disk;
  {
    Writer writer(disk, {kRoot, "", 2, 1});
    EXPECT_TRUE(writer.submit(Sample(10).owned()));
  }
  EXPECT_TRUE(Sample(10).equals(*load_newest(disk, kRoot).loaded));
}

TEST(Writer, ManyThreadsMayUseIt) {
  FaultyDisk disk;
  Writer writer(disk, {kRoot, "", 1, 1});
  std::atomic<int64_t> accepted = 0, refused = 0, next = 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        (writer.submit(Sample(next++).owned()) ? accepted : refused)++;
        writer.set_best({Step(1)});
        writer.status();
        writer.wait(0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(writer.wait(kLong));
  EXPECT_EQ(accepted + refused, 100);
  EXPECT_EQ(writer.status().skipped, refused);
  EXPECT_GE(accepted, 1);
}

}  // namespace
}  // namespace sinew::checkpoint
