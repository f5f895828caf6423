// Tests the Writer in a process that must not write, or must no longer write.
#include <gtest/gtest.h>

#include "base/faulty_disk.h"
#include "base/write_fence.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

TEST(WriterFence, ChangesNothingOnDiskWithoutPermission) {
  FaultyDisk disk;
  bool turn = false;  // whether this process may write; the writer's thread reads it only between submit and wait
  Writer writer(disk, {kRoot, "mirror", 1, 1, [&] { return turn; }});
  save_and_wait(writer, 10);
  EXPECT_EQ(disk.calls(), 0);
  EXPECT_NE(writer.status().trouble.find("[CHECKPOINT_MAY_NOT_WRITE]"), std::string::npos) << writer.status().trouble;
  EXPECT_FALSE(writer.status().durable);
  EXPECT_TRUE(writer.ready());
  turn = true;
  save_and_wait(writer, 20);
  EXPECT_EQ(writer.status().trouble, "");
  EXPECT_EQ(writer.status().durable, Step(20));
  EXPECT_EQ(writer.status().mirrored, Step(20));
  turn = false;
  writer.set_best({Step(20)});
  ASSERT_TRUE(writer.wait(kLong));
  EXPECT_TRUE(writer.status().trouble.starts_with("the link 'best'")) << writer.status().trouble;
  EXPECT_NE(writer.status().trouble.find("[CHECKPOINT_MAY_NOT_WRITE]"), std::string::npos) << writer.status().trouble;
  EXPECT_FALSE(disk.exists(kRoot + "/best"));
}

// The permission to write may end at any check. After that, no name on disk may change, and every checkpoint must be
// complete.
TEST(WriterFence, MakesNoVisibleChangeAfterThePermissionEnds) {
  constexpr int kNever = 1000;
  int asked = 0, most = 0;
  for (int turn_ends = 0; turn_ends <= most; ++turn_ends) {
    FaultyDisk disk;
    for (const std::string& root : {kRoot, std::string("mirror")}) save(disk, root, Sample(10).snapshot(), 1.0);
    const int ends = turn_ends == 0 ? kNever : turn_ends;  // the first pass counts the checks
    asked = 0;
    std::vector<std::string> too_late;
    disk.before_rename = [&](const std::string& to) {
      if (asked >= ends) too_late.push_back(to);
    };
    {
      Writer writer(disk, {kRoot, "mirror", 1, 1, [&] { return ++asked < ends; }});
      writer.set_best({Step(20)});
      ASSERT_TRUE(writer.wait(kLong));
      save_and_wait(writer, 20);
      if (turn_ends == 0) {
        EXPECT_EQ(writer.status().trouble, "");
      } else {
        EXPECT_NE(writer.status().trouble.find("[CHECKPOINT_MAY_NOT_WRITE]"), std::string::npos)
            << writer.status().trouble;
      }
    }
    if (turn_ends == 0) most = asked;
    EXPECT_EQ(too_late, std::vector<std::string>()) << "question " << turn_ends;
    for (const std::string& root : {kRoot, std::string("mirror")}) {
      const Newest newest = load_newest(disk, root);
      ASSERT_TRUE(newest.loaded);
      EXPECT_TRUE(newest.damaged.empty());
      EXPECT_TRUE(Sample(newest.loaded->step.value).equals(*newest.loaded));
    }
  }
  EXPECT_GE(most, 10);  // two publications, two links, two deletions, and a check before each piece of work
}

// Another writer takes over before each call of the disk. After that, the replaced writer changes nothing below root,
// and what it had published is complete.
TEST(WriterFence, ChangesNothingAfterAnotherWriterHasTakenOver) {
  const std::string run = "run", root = run + "/checkpoints";
  const auto names = [&](FaultyDisk& disk) {
    std::string all;
    for (const auto& entry : disk.list(root)) {
      all += entry.name + " ";
      if (entry.directory) all += read_text(disk, join(join(root, entry.name), kManifest)) + "\n";
    }
    return all;
  };
  bool interrupted = true;
  for (int64_t k = 1; interrupted; ++k) {
    SCOPED_TRACE(k);
    FaultyDisk disk;
    disk.make_directories(run);
    WriteFence first(disk, run, 1), second(disk, run, 2);
    save(first, root, Sample(10).snapshot(), 1.0);
    point_link(first, root, "last", Step(10));
    std::string before;
    interrupted = false;
    {
      Writer writer(first, {root, "", 1, 1});
      int64_t call = 0;
      disk.before_call = [&] {
        if (++call != k) return;
        second.take_over();
        before = names(disk);
        interrupted = true;
      };
      save_and_wait(writer, 20);
      disk.before_call = nullptr;
      EXPECT_FALSE(writer.status().refused) << "no later save can succeed";
    }
    if (interrupted) {
      EXPECT_EQ(names(disk), before);
    }
    EXPECT_TRUE(disk.list(run + "/.writers").size() == 1);
    const Newest newest = load_newest(disk, root);
    ASSERT_TRUE(newest.loaded);
    EXPECT_TRUE(newest.damaged.empty());
    EXPECT_TRUE(Sample(newest.loaded->step.value).equals(*newest.loaded));
  }
}

}  // namespace
}  // namespace sinew::checkpoint
