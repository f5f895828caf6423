// Tests that a writer of a run directory changes nothing after another has taken over, wherever it was interrupted.
#include "base/write_fence.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "base/faulty_disk.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

const std::string kRun = "runs/a";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void put(Disk& disk, const std::string& path, std::string_view text) {
  const auto file = disk.create(path);
  file->write(bytes_of(text));
  file->sync();
  file->close();
}

// The contents of all files of the run, without those of the writers' own directories.
std::map<std::string, std::string> files_of(Disk& disk, const std::string& directory = kRun) {
  std::map<std::string, std::string> files;
  for (const Disk::Entry& entry : disk.list(directory)) {
    const std::string path = directory + "/" + entry.name;
    if (entry.name == WriteFence::kDirectory) continue;
    if (entry.directory) {
      files.merge(files_of(disk, path));
    } else {
      files[path] = disk.exists(path) ? read_text(disk, path) : "a link that leads nowhere";
    }
  }
  return files;
}

// Publishes a directory with one file, as a checkpoint is published.
void publish(Disk& disk, const std::string& name, std::string_view text) {
  const std::string root = kRun + "/checkpoints", prepared = disk.staging(root + "/.saving-" + name);
  make_directories_durably(disk, root);
  disk.make_directories(prepared);
  put(disk, prepared + "/model", text);
  disk.sync_directory(prepared);
  disk.rename(prepared, root + "/" + name);
  disk.sync_directory(root);
}

void unpublish(Disk& disk, const std::string& name) {
  const std::string root = kRun + "/checkpoints", removed = disk.staging(root + "/.removed-" + name);
  disk.rename(root + "/" + name, removed);
  disk.sync_directory(root);
  disk.remove_all(removed);
}

// Makes every kind of change to the files of a run.
void work(Disk& disk, const std::string& who) {
  const auto ledger = disk.append(kRun + "/ledger.jsonl");
  ledger->write(bytes_of(who + " 1\n"));
  write_durably(disk, kRun + "/report.json", who);
  publish(disk, "step-" + who, who);
  const std::string link = disk.staging(kRun + "/checkpoints/.last.link");
  disk.remove_file(link);
  disk.symlink("step-" + who, link);
  disk.rename(link, kRun + "/checkpoints/last");
  ledger->write(bytes_of(who + " 2\n"));
  disk.remove_file(kRun + "/report.json");
  disk.append(kRun + "/log.jsonl")->write(bytes_of(who + "\n"));
  unpublish(disk, "step-" + who);
  disk.remove_all(kRun + "/checkpoints");
  ledger->write(bytes_of(who + " 3\n"));
}

class Fence : public testing::Test {
 protected:
  Fence() { disk_.make_directories(kRun); }
  FaultyDisk disk_;
};

TEST_F(Fence, AWriterPreparesInItsOwnDirectoryAndLeavesNothingThere) {
  std::vector<std::string> from;
  disk_.after_rename = [&](const std::string& before, const std::string&) { from.push_back(before); };
  WriteFence fence(disk_, kRun + "/", 7);
  write_durably(fence, kRun + "/report.json", "text");
  publish(fence, "step-1", "weights");
  fence.append(kRun + "/ledger.jsonl")->write(bytes_of("line\n"));
  ASSERT_EQ(from.size(), 3U);
  for (const std::string& path : from) EXPECT_TRUE(path.starts_with(kRun + "/.writers/7/.")) << path;
  EXPECT_EQ(files_of(disk_), (std::map<std::string, std::string>{{kRun + "/report.json", "text"},
                                                                 {kRun + "/checkpoints/step-1/model", "weights"},
                                                                 {kRun + "/ledger.jsonl", "line\n"}}));
  fence.remove_file(kRun + "/report.json");
  fence.remove_file(kRun + "/none");
  fence.remove_all(kRun + "/checkpoints");
  fence.remove_all(kRun + "/none");
  EXPECT_EQ(files_of(disk_), (std::map<std::string, std::string>{{kRun + "/ledger.jsonl", "line\n"}}));
  EXPECT_TRUE(disk_.list(kRun + "/.writers/7").empty());
}

TEST_F(Fence, PathsOutsideOfTheRunPassThrough) {
  WriteFence fence(disk_, kRun, 1);
  fence.make_directories("mirror/runs/a");
  write_durably(fence, "mirror/runs/a/report.json", "text");
  write_durably(fence, "runs/ab", "text");
  fence.remove_file("runs/ab");
  EXPECT_FALSE(disk_.exists(kRun + "/.writers")) << "it has not written to the run";
  EXPECT_EQ(fence.staging("mirror/.x"), "mirror/.x");
}

TEST_F(Fence, AGrowingFileKeepsItsLinesAndLosesItsOldWriter) {
  disk_.create(kRun + "/ledger.jsonl")->write(bytes_of("0\n"));
  WriteFence first(disk_, kRun, 1);
  const auto old = first.append(kRun + "/ledger.jsonl");
  old->write(bytes_of("1\n"));
  WriteFence second(disk_, kRun, 2);
  const auto now = second.append(kRun + "/ledger.jsonl");
  now->write(bytes_of("2\n"));
  old->write(bytes_of("late\n"));
  now->write(bytes_of("3\n"));
  EXPECT_EQ(read_text(disk_, kRun + "/ledger.jsonl"), "0\n1\n2\n3\n");
}

TEST_F(Fence, EveryChangeOfAReplacedWriterFails) {
  WriteFence first(disk_, kRun, 1), second(disk_, kRun, 2);
  work(first, "first");
  const std::string prepared = first.staging(kRun + "/.prepared");
  put(first, prepared, "old");
  put(first, kRun + "/.writers/1/.other", "old");
  second.take_over();
  work(second, "second");
  write_durably(second, kRun + "/report.json", "new");
  const auto files = files_of(disk_);
  const std::vector<std::function<void()>> changes = {
      [&] { first.rename(prepared, kRun + "/report.json"); },
      [&] { first.rename(kRun + "/report.json", prepared); },
      [&] { first.create(prepared); },
      [&] { first.create_new(prepared); },
      [&] { first.append(kRun + "/ledger.jsonl"); },
      [&] { first.make_directories(kRun + "/.writers/1/.saving/deep"); },
      [&] { first.symlink("report.json", prepared); },
      [&] { first.remove_file(kRun + "/report.json"); },
      [&] { first.remove_all(kRun + "/report.json"); },
      [&] { write_durably(first, kRun + "/report.json", "old"); },
      [&] { first.check(); },
      [&] { first.take_over(); },
      [&] { work(first, "again"); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_THROW(changes[i](), WriterReplaced) << i;
    EXPECT_EQ(files_of(disk_), files) << i;
    EXPECT_FALSE(disk_.exists(kRun + "/.writers/1")) << i;
  }
  second.check();
}

// Another writer takes over before each call of the disk, while the first one works.
TEST_F(Fence, WhereverAWriterIsInterruptedItChangesNothingAfterwards) {
  int64_t calls = 0;
  {
    WriteFence alone(disk_, kRun, 1);
    const int64_t before = disk_.calls();
    work(alone, "alone");
    calls = disk_.calls() - before;
  }
  ASSERT_GT(calls, 35);
  int64_t replaced = 0;
  for (int64_t k = 1; k <= calls; ++k) {
    SCOPED_TRACE(k);
    FaultyDisk disk;
    disk.make_directories(kRun);
    WriteFence first(disk, kRun, 1), second(disk, kRun, 2);
    std::map<std::string, std::string> files;
    std::unique_ptr<Disk::File> ledger;
    int64_t call = 0;
    bool within = false;
    disk.before_call = [&] {
      if (within || ++call != k) return;
      within = true;
      second.take_over();
      ledger = second.append(kRun + "/ledger.jsonl");
      second.append(kRun + "/log.jsonl");
      files = files_of(disk);
      within = false;
    };
    try {
      work(first, "first");
    } catch (const WriterReplaced&) {
      ++replaced;
    }
    disk.before_call = nullptr;
    EXPECT_EQ(files_of(disk), files);
    ledger->write(bytes_of("second\n"));
    EXPECT_EQ(read_text(disk, kRun + "/ledger.jsonl"), files[kRun + "/ledger.jsonl"] + "second\n");
    second.check();
  }
  EXPECT_GT(replaced, calls / 2);
}

// The older writer works before each call of the disk, while the next one takes over.
TEST_F(Fence, WhereverATakeoverIsInterruptedTheOlderWriterEndsWithIt) {
  for (int64_t k = 1;; ++k) {
    SCOPED_TRACE(k);
    FaultyDisk disk;
    disk.make_directories(kRun);
    WriteFence first(disk, kRun, 1), second(disk, kRun, 2);
    first.take_over();
    put(first, kRun + "/.writers/1/.left", "x");
    int64_t call = 0;
    disk.before_call = [&] {
      if (++call != k) return;
      try {
        work(first, "first");
      } catch (const WriterReplaced&) {
      }
    };
    second.take_over();
    const bool all = call < k;
    disk.before_call = nullptr;
    const auto files = files_of(disk);
    EXPECT_THROW(work(first, "late"), WriterReplaced);
    EXPECT_EQ(files_of(disk), files);
    EXPECT_FALSE(disk.exists(kRun + "/.writers/1"));
    EXPECT_TRUE(disk.list(kRun + "/.writers/2").empty());
    if (all) break;
  }
}

TEST_F(Fence, ALateWriterSeesTheHigherNumber) {
  WriteFence late(disk_, kRun, 1), newest(disk_, kRun, 2), same(disk_, kRun, 2);
  newest.take_over();
  EXPECT_THROW(late.take_over(), WriterReplaced);
  EXPECT_THROW(same.take_over(), WriterReplaced);
  EXPECT_FALSE(disk_.exists(kRun + "/.writers/1"));
  newest.check();
  EXPECT_FALSE(late.has_taken_over() || same.has_taken_over());
}

TEST_F(Fence, AWriterTellsWhoEndedItsRight) {
  const auto code_of = [](WriteFence& fence) -> std::string {
    try {
      write_durably(fence, kRun + "/report.json", "text");
    } catch (const WriterReplaced& replaced) {
      return to_string(replaced);
    }
    return "";
  };
  WriteFence one(disk_, kRun, 1), two(disk_, kRun, 2), same(disk_, kRun, 2);
  one.take_over();
  two.take_over();
  EXPECT_NE(code_of(one).find("CHECKPOINT_MAY_NOT_WRITE"), std::string::npos);
  EXPECT_NE(code_of(same).find("CHECKPOINT_MAY_NOT_WRITE"), std::string::npos);
  disk_.remove_all(kRun + "/.writers");
  EXPECT_NE(code_of(two).find("RUN_DIRECTORY_LOST"), std::string::npos);
}

TEST_F(Fence, OfTwoTakeoversAtOnceTheHigherNumberStays) {
  for (int64_t k = 1;; ++k) {
    SCOPED_TRACE(k);
    FaultyDisk disk;
    disk.make_directories(kRun);
    WriteFence one(disk, kRun, 1), two(disk, kRun, 2), three(disk, kRun, 3);
    one.take_over();
    int64_t call = 0;
    bool within = false;
    disk.before_call = [&] {
      if (within || ++call != k) return;
      within = true;
      three.take_over();
      within = false;
    };
    bool replaced = false;
    try {
      two.take_over();
    } catch (const WriterReplaced&) {
      replaced = true;
    }
    if (!three.has_taken_over()) break;
    EXPECT_TRUE(replaced);
    disk.before_call = nullptr;
    three.check();
    EXPECT_THROW(two.check(), WriterReplaced);
    ASSERT_EQ(disk.list(kRun + "/.writers").size(), 1U);
    EXPECT_EQ(disk.list(kRun + "/.writers")[0].name, "3");
  }
}

TEST_F(Fence, ATakeoverThatFailsCanBeRepeated) {
  for (int64_t k = 1;; ++k) {
    SCOPED_TRACE(k);
    FaultyDisk disk;
    disk.make_directories(kRun);
    WriteFence one(disk, kRun, 1), two(disk, kRun, 2);
    one.take_over();
    put(one, kRun + "/.writers/1/.left", "x");
    disk.fail_at(k, EIO);
    bool failed = false;
    try {
      two.take_over();
    } catch (const DiskError&) {
      failed = true;
      EXPECT_FALSE(two.has_taken_over());
      two.take_over();
    }
    disk.fail_at(-1, 0);
    EXPECT_TRUE(two.has_taken_over());
    EXPECT_THROW(write_durably(one, kRun + "/report.json", "old"), WriterReplaced);
    EXPECT_TRUE(disk.list(kRun + "/.writers/2").empty());
    if (!failed) break;
  }
}

TEST_F(Fence, WhatDeadWritersLeftIsCollected) {
  EXPECT_EQ(WriteFence::free_number(disk_, kRun), 1) << "a run of an older version";
  {
    WriteFence dead(disk_, kRun, 41);
    put(dead, dead.staging(kRun + "/.left"), "x");
  }
  for (const char* junk : {"x", ".gone-3", "007", "-1", "99999999999999999999", "notes"})
    disk_.make_directories(kRun + "/.writers/" + junk);
  disk_.create(kRun + "/.writers/12")->close();
  EXPECT_EQ(WriteFence::free_number(disk_, kRun), 42);
  WriteFence next(disk_, kRun, 42);
  next.take_over();
  ASSERT_EQ(disk_.list(kRun + "/.writers").size(), 1U);
  EXPECT_TRUE(disk_.list(kRun + "/.writers/42").empty());
}

TEST_F(Fence, ADirectoryOnAnotherFileSystemIsNamed) {
  WriteFence fence(disk_, kRun, 1);
  const std::string prepared = fence.staging(kRun + "/.prepared");
  const std::vector<std::function<void()>> changes = {
      [&] { fence.rename(prepared, kRun + "/checkpoints/step-1"); },
      [&] { fence.remove_file(kRun + "/report.json"); },
      [&] { fence.remove_all(kRun + "/checkpoints/step-1"); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    disk_.fail_at(1, EXDEV);
    try {
      changes[i]();
      ADD_FAILURE() << i;
    } catch (const DiskError& error) {
      EXPECT_NE(error.hint.find("one file system"), std::string::npos) << i << error.hint;
    }
  }
}

TEST_F(Fence, AReplacedWriterThatHoldsTheLockTakesOverAgain) {
  WriteFence first(disk_, kRun, 1), second(disk_, kRun, 2);
  first.take_over();
  EXPECT_FALSE(first.take_over_again()) << "it is still the newest";
  second.take_over();
  EXPECT_TRUE(first.take_over_again());
  write_durably(first, kRun + "/report.json", "first");
  EXPECT_THROW(write_durably(second, kRun + "/report.json", "second"), WriterReplaced);
  EXPECT_EQ(WriteFence::highest_number(disk_, kRun), 3);
}

// The machine crashes at any call of a takeover, or after it. The checkpoint that the older writer made durable stays,
// whatever the crash loses.
TEST_F(Fence, ACrashLosesNoDurableDirectory) {
  for (uint64_t fate = 0; fate < 40; ++fate) {
    for (int64_t k = 1; k <= 25; ++k) {
      FaultyDisk disk;
      make_directories_durably(disk, kRun);
      WriteFence first(disk, kRun, 1), second(disk, kRun, 2), third(disk, kRun, 3);
      publish(first, "step-1", "one");
      publish(first, "step-2", "two");
      unpublish(first, "step-1");
      put(first, first.staging(kRun + "/.left"), "x");
      disk.stop_world_at(k, FaultyDisk::When::after);
      try {
        second.take_over();
        publish(second, "step-3", "three");
      } catch (const WorldStopped&) {
      }
      disk.crash(random_key({fate, static_cast<uint64_t>(k)}), fate == 0);
      third.take_over();
      disk.crash(random_key({fate, static_cast<uint64_t>(k), 1}));
      ASSERT_TRUE(disk.exists(kRun + "/checkpoints/step-2/model")) << fate << " " << k;
      ASSERT_EQ(read_text(disk, kRun + "/checkpoints/step-2/model"), "two");
    }
  }
}

// On the real disk, a thread writes while another one takes over.
TEST(FenceOnTheRealDisk, AThreadThatWritesWhileAnotherTakesOver) {
  std::string folder = (fs::temp_directory_path() / "sinew-fence-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto all = [&] {
    return read_text(system_disk(), folder + "/report.json") + read_text(system_disk(), folder + "/ledger.jsonl");
  };
  for (int64_t number = 1; number <= 40; number += 2) {
    WriteFence first(system_disk(), folder, number), second(system_disk(), folder, number + 1);
    const auto ledger = first.append(folder + "/ledger.jsonl");
    write_durably(first, folder + "/report.json", "begin");
    std::atomic<int> writes = 0;
    std::atomic<bool> over = false;
    std::thread late([&] {
      try {
        while (!over) {
          const std::string text = std::to_string(++writes);
          const std::string prepared = first.staging(folder + "/.report");
          first.create(prepared)->write(bytes_of(text));
          first.rename(prepared, folder + "/report.json");
          ledger->write(bytes_of(text + "\n"));
          first.remove_file(folder + "/none");
        }
      } catch (const WriterReplaced&) {
      }
    });
    const auto pause = [] { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
    while (writes < 3 + number % 7) pause();
    second.take_over();
    second.append(folder + "/ledger.jsonl");
    const std::string now = all();
    const int before = writes;
    for (int i = 0; i < 10; ++i) pause();  // meanwhile, the first writer could write many times
    EXPECT_EQ(all(), now);
    EXPECT_LE(writes, before + 1);
    over = true;
    late.join();
    EXPECT_EQ(all(), now);
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sinew
