// Tests garbage collection with puts, attachments and collections in random order. The process or the machine may die
// at any point.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/faulty_disk.h"
#include "base/sha256.h"
#include "checkpoint/checkpoint.h"
#include "registry/blob_store.h"
#include "registry/testing.h"

namespace sinew::registry {
namespace {

// A disk that calls `between` before most of its calls, so that the test can let another process act at that moment.
class CrowdedDisk final : public Disk {
 public:
  explicit CrowdedDisk(Disk& disk) : disk_(disk) {}
  std::function<void()> between;

  std::unique_ptr<File> create(const std::string& path) override { return gap(), disk_.create(path); }
  std::unique_ptr<File> append(const std::string& path) override { return gap(), disk_.append(path); }
  std::vector<std::byte> read(const std::string& path) override { return gap(), disk_.read(path); }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return gap(), disk_.read_at(path, offset, out);
  }
  std::vector<Entry> list(const std::string& directory) override { return gap(), disk_.list(directory); }
  bool exists(const std::string& path) override { return gap(), disk_.exists(path); }
  uint64_t size(const std::string& path) override { return gap(), disk_.size(path); }
  void make_directories(const std::string& path) override { gap(), disk_.make_directories(path); }
  void make_directory(const std::string& path) override { gap(), disk_.make_directory(path); }
  void rename(const std::string& from, const std::string& to) override { gap(), disk_.rename(from, to); }
  void symlink(const std::string& target, const std::string& path) override { disk_.symlink(target, path); }
  void remove_file(const std::string& path) override { gap(), disk_.remove_file(path); }
  void remove_all(const std::string& path) override { gap(), disk_.remove_all(path); }
  void sync_directory(const std::string& path) override { gap(), disk_.sync_directory(path); }
  void drop_cache(const std::string& path) override { disk_.drop_cache(path); }

 private:
  void gap() {
    if (between) between();
  }
  Disk& disk_;
};

// Makes a few blobs. There are only a few, so that the same ones are put, detached and collected again and again.
std::vector<std::string> some_blobs(RandomStream& random) {
  std::vector<std::string> bytes_to_put = {"one", "two", "three"};
  const std::string frozen = random_bytes(random, 20'000), other = random_bytes(random, 20'000);
  for (const std::string* last : {&frozen, &other}) {
    for (const std::string step : {"1", "2"}) {
      std::vector<checkpoint::TensorBytes> tensors;
      tensors.push_back({"a", DType::u8, {20'000}, std::as_bytes(std::span(frozen.data(), frozen.size()))});
      tensors.push_back({"b", DType::u8, {20'000}, std::as_bytes(std::span(last->data(), last->size()))});
      const auto header = checkpoint::safetensors_header(tensors, {{"step", step}});
      bytes_to_put.push_back(std::string(reinterpret_cast<const char*>(header.data()), header.size()) + frozen + *last);
    }
  }
  return bytes_to_put;
}

class World {
 public:
  World(uint64_t seed) : random_(RandomKey{seed}), bytes_to_put_(some_blobs(random_)) {}

  // Runs one life of the process: some actions, each of which other processes may interrupt. The life ends by itself or
  // by a kill.
  void live(bool to_be_killed) {
    CrowdedDisk crowded(disk_);
    Artifacts artifacts("/a", crowded, clock_);
    crowded.between = [&] {
      if (depth_ < 3 && random_.below(40) == 0) act(artifacts);
    };
    if (to_be_killed) {
      disk_.stop_world_at(static_cast<int64_t>(random_.below(400)),
                          random_.below(2) == 0 ? FaultyDisk::When::before : FaultyDisk::When::after);
    }
    try {
      for (uint64_t actions = 1 + random_.below(12); actions > 0; --actions) act(artifacts);
    } catch (const WorldStopped&) {
    }
    depth_ = 0;
    collecting_ = false;
    crowded.between = nullptr;
  }
  void die() {
    if (random_.below(2) == 0) {
      disk_.crash(RandomKey{random_.bits64()}, random_.below(4) == 0);
    } else {
      disk_.restart();
    }
    if (random_.below(3) == 0) clock_.seconds += kPinSeconds + 1;  // the pins of dead processes expire
  }

  void check() {
    Artifacts artifacts("/a", disk_, clock_);
    for (const std::string& digest : attached_) {
      const auto well = artifacts.verify(digest);
      ASSERT_TRUE(well) << well.error();
    }
  }
  // Collects garbage after all processes have ended. It must remove exactly the blobs that are not attached.
  void check_nothing_is_left_over() {
    clock_.seconds += 2 * kPinSeconds;
    Artifacts artifacts("/a", disk_, clock_);
    const auto collected = artifacts.collect([&] { return attached_; });
    EXPECT_TRUE(collected.problems.empty()) << collected.problems[0];
    check();
    std::set<std::string> wanted = attached_;
    BlobStore blobs("/a", disk_, clock_);
    for (const std::string& digest : attached_) {
      if (const auto found = blobs.get(digest); found.is_manifest)
        for (const BlobInfo& chunk : blobs.read_chunk_manifest(found.path).chunks) wanted.insert(chunk.digest);
    }
    for (const BlobStore::Entry& entry : blobs.list()) {
      EXPECT_TRUE(wanted.contains(entry.name.digest)) << entry.path;
      EXPECT_FALSE(entry.name.is_tombstone) << entry.path;
    }
  }

 private:
  void act(Artifacts& artifacts) {
    ++depth_;
    switch (random_.below(6)) {
      case 0:
      case 1: put(artifacts); break;
      case 2: copy(artifacts); break;
      case 3: detach(); break;
      case 4:
      case 5: collect(artifacts); break;
    }
    --depth_;
  }
  void put(Artifacts& artifacts) {
    auto pin = artifacts.pin();
    const BlobInfo stored = pin.put(bytes_to_put_[random_.below(bytes_to_put_.size())]);
    attached_.insert(stored.digest);
  }
  // Attaches a blob once more, of which it knows only the digest. The blob may have been removed before.
  void copy(Artifacts& artifacts) {
    const std::string digest = sha256_hex(bytes_to_put_[random_.below(bytes_to_put_.size())]);
    auto pin = artifacts.pin();
    if (pin.keep(digest)) attached_.insert(digest);
  }
  void detach() {
    if (attached_.empty()) return;
    auto at = attached_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.below(attached_.size())));
    attached_.erase(at);
  }
  void collect(Artifacts& artifacts) {
    if (collecting_) return;  // collect_garbage() ensures by a lease that only one collection runs
    collecting_ = true;
    const auto collected = artifacts.collect([&] { return attached_; });
    EXPECT_TRUE(collected.problems.empty()) << collected.problems[0];
    collecting_ = false;
  }

  RandomStream random_;
  FaultyDisk disk_;
  HandClock clock_;
  const std::vector<std::string> bytes_to_put_;
  std::set<std::string> attached_;  // stands for the store, which survives all deaths
  int depth_ = 0;
  bool collecting_ = false;
};

TEST(Collect, KeepsReferencedBlobsWhateverHappensInBetween) {
  for (uint64_t seed = 0; seed < 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int life = 0; life < 4; ++life) {
      world.live(false);
      world.check();
    }
    world.check_nothing_is_left_over();
  }
}

TEST(Collect, DeathsAtAnyCallLoseNoReferencedBlob) {
  for (uint64_t seed = 1000; seed < 1300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int life = 0; life < 5; ++life) {
      world.live(true);
      world.die();
      world.check();
    }
    world.check_nothing_is_left_over();
  }
}

// Several threads put blobs on a real disk while another thread collects. The kernel decides their order.
TEST(Collect, ThreadsFindWhatTheyAttachedDuringACollection) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  RandomStream random(RandomKey{7});
  const std::vector<std::string> bytes_to_put = some_blobs(random);
  std::mutex mutex;
  std::set<std::string> attached;
  std::atomic<int> putting = 2;
  const auto put_all = [&](uint64_t seed) {
    RandomStream own(RandomKey{seed});
    for (int i = 0; i < 60; ++i) {
      const std::string& bytes = bytes_to_put[own.below(bytes_to_put.size())];
      {
        auto pin = artifacts.pin();
        const BlobInfo stored = pin.put(bytes);
        const auto well = artifacts.verify(stored.digest);
        EXPECT_TRUE(well) << well.error();
        const std::lock_guard lock(mutex);
        attached.insert(stored.digest);
      }
      const std::lock_guard lock(mutex);
      if (own.below(2) == 0) attached.clear();
    }
    --putting;
  };
  std::thread one([&] { put_all(1); }), two([&] { put_all(2); });
  while (putting > 0) {
    artifacts.collect([&] {
      const std::lock_guard lock(mutex);
      return attached;
    });
  }
  one.join();
  two.join();
  for (const std::string& digest : attached) EXPECT_TRUE(artifacts.verify(digest)) << digest;
}

TEST(Collect, ADryRunRemovesNothing) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  BlobInfo kept, gone;
  {
    auto pin = artifacts.pin();
    kept = pin.put("kept");
    gone = pin.put("gone!");
  }
  const auto referenced = [&] { return std::set<std::string>{kept.digest}; };
  const auto said = artifacts.collect(referenced, true);
  EXPECT_EQ(said.blobs, 1);
  EXPECT_EQ(said.bytes, 5);
  EXPECT_TRUE(artifacts.has(gone.digest));
  const auto done = artifacts.collect(referenced);
  EXPECT_EQ(done.blobs, 1);
  EXPECT_EQ(done.kept, 1);
  EXPECT_FALSE(artifacts.has(gone.digest));
  EXPECT_TRUE(artifacts.verify(kept.digest));
}

// Each model is a chunk manifest. A garbage collection removes the chunks of a model with it, except for those that
// another model has, too.
TEST(Collect, ADryRunReportsWhatACollectionRemoves) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Folder folder;
    RandomStream random(RandomKey{seed});
    Artifacts artifacts(folder / "a");
    std::set<std::string> referenced;
    {
      auto pin = artifacts.pin();
      for (const std::string& bytes : some_blobs(random)) {
        const BlobInfo stored = pin.put(bytes);
        if (random.below(2) == 0) referenced.insert(stored.digest);
      }
    }
    const auto said = artifacts.collect([&] { return referenced; }, true);
    const auto done = artifacts.collect([&] { return referenced; });
    EXPECT_EQ(said.blobs, done.blobs) << seed;
    EXPECT_EQ(said.bytes, done.bytes) << seed;
    EXPECT_EQ(said.kept, done.kept) << seed;
    EXPECT_EQ(said.kept_bytes, done.kept_bytes) << seed;
    EXPECT_TRUE(said.problems.empty() && done.problems.empty()) << seed;
  }
}

// Reading all references takes time in proportion to all blobs. So a collection does it only a few times.
TEST(Collect, ReadsTheReferencesOnlyAFewTimes) {
  FaultyDisk disk;
  HandClock clock;
  Artifacts artifacts("/a", disk, clock);
  {
    auto pin = artifacts.pin();
    for (int i = 0; i < 4000; ++i) pin.put(std::to_string(i));
  }
  int asked = 0;
  EXPECT_EQ(artifacts.collect([&] { return ++asked, std::set<std::string>(); }).blobs, 4000);
  EXPECT_LE(asked, 9);
  EXPECT_TRUE(artifacts.empty());
}

TEST(Collect, ReportsALostBlob) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  const auto collected = artifacts.collect([] { return std::set<std::string>{sha256_hex("lost")}; });
  ASSERT_EQ(collected.problems.size(), 1u);
  EXPECT_NE(collected.problems[0].find("is referenced but missing"), std::string::npos);
}

}  // namespace
}  // namespace sinew::registry
