// Tests that a process without the right to write changes no visible name, and can still remove its own hidden files.
#include "base/fenced_disk.h"

#include <gtest/gtest.h>

#include "base/faulty_disk.h"

namespace sinew {
namespace {

TEST(FencedDisk, ChecksEveryVisibleChange) {
  FaultyDisk disk;
  bool may_write = false;
  FencedDisk fenced(disk, [&] { return may_write; });
  disk.make_directories("run/.saving-1");
  disk.make_directories("run/step-1");
  for (const char* name : {"run/report.json", "run/.report.tmp"}) disk.create(name)->close();
  EXPECT_THROW(fenced.rename("run/.report.tmp", "run/report.json"), MayNotWrite);
  EXPECT_THROW(fenced.remove_file("run/report.json"), MayNotWrite);
  EXPECT_THROW(fenced.remove_all("run/step-1"), MayNotWrite);
  EXPECT_THROW(fenced.remove_all("run/step-1/"), MayNotWrite);
  EXPECT_THROW(fenced.remove_file("report.json"), MayNotWrite);
  EXPECT_TRUE(disk.exists("run/report.json") && disk.exists("run/step-1"));
  fenced.remove_file("run/.report.tmp");
  fenced.remove_all("run/.saving-1");
  EXPECT_FALSE(disk.exists("run/.report.tmp") || disk.exists("run/.saving-1"));
  may_write = true;
  fenced.remove_file("run/report.json");
  fenced.remove_all("run/step-1");
  EXPECT_FALSE(disk.exists("run/report.json") || disk.exists("run/step-1"));
}

TEST(FencedDisk, ChecksCreationsIfAsked) {
  FaultyDisk disk;
  bool may_write = false;
  FencedDisk fenced(
      disk, [&] { return may_write; }, FencedDisk::Checks::creations);
  EXPECT_THROW(fenced.make_directories("run/.saving-1"), MayNotWrite);
  EXPECT_THROW(fenced.create(".report.tmp"), MayNotWrite);
  EXPECT_THROW(fenced.append("metrics.jsonl"), MayNotWrite);
  EXPECT_THROW(fenced.symlink("step-1", ".last.tmp"), MayNotWrite);
  EXPECT_FALSE(disk.exists("run") || disk.exists(".report.tmp") || disk.exists("metrics.jsonl"));
  may_write = true;
  fenced.create(".report.tmp")->close();
  EXPECT_TRUE(fenced.exists(".report.tmp"));
}

}  // namespace
}  // namespace sinew
