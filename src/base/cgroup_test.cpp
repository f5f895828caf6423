#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sinew {
namespace {

namespace fs = std::filesystem;
using Directories = std::vector<std::string>;

TEST(Cgroup, AProcessIsInAGroupAndInAllGroupsAboveIt) {
  EXPECT_EQ(cgroup_directories("0::/user.slice/job-7\n", "cpu", "/c"),
            (Directories{"/c/user.slice/job-7", "/c/user.slice", "/c"}));
  EXPECT_EQ(cgroup_directories("0::/\n", "cpu", "/c"), Directories{"/c"});
  EXPECT_EQ(cgroup_directories("9:name=systemd:/x\n5:cpu,cpuacct:/docker/a\n4:memory:/m\n0::/\n", "cpu", "/c"),
            (Directories{"/c/cpu/docker/a", "/c/cpu/docker", "/c/cpu", "/c"}));
  EXPECT_EQ(cgroup_directories("0::/../../x\n", "cpu", "/c"), Directories{"/c"});  // as a container may see it
  EXPECT_EQ(cgroup_directories("", "cpu", "/c"), Directories{});
  EXPECT_EQ(cgroup_directories("nonsense\n:\n::\n3:cpu:relative\n", "cpu", "/c"), Directories{});
}

class CgroupFiles : public testing::Test {
 protected:
  ~CgroupFiles() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Directories of(const std::string& self, const std::string& controller) const {
    return cgroup_directories(self, controller, root_.string());
  }

 private:
  fs::path root_ = fs::path(testing::TempDir()) / ("cgroup-" + std::to_string(::getpid()));
};

TEST_F(CgroupFiles, TheLowestLimitOfV2Counts) {
  write("a/b/cpu.max", "max 100000\n");
  write("a/cpu.max", "150000 100000\n");
  write("cpu.max", "400000 100000\n");
  write("a/b/memory.max", "max\n");
  write("a/memory.max", "4096000\n");
  write("a/b/cpu.stat", "usage_usec 5\nnr_throttled 0\nthrottled_usec 500000\n");
  write("a/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 2500000\n");
  const Directories own = of("0::/a/b\n", "cpu");
  EXPECT_EQ(cgroup_cores(own), 1.5);
  EXPECT_EQ(cgroup_memory(own), 4096000U);
  EXPECT_EQ(cgroup_throttled(own), 3);
}

TEST_F(CgroupFiles, ReadsTheFilesOfV1) {
  write("cpu/j/cpu.cfs_quota_us", "50000\n");
  write("cpu/j/cpu.cfs_period_us", "100000\n");
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("cpu/j/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 1500000000\n");
  write("memory/j/memory.limit_in_bytes", "1073741824\n");
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  const std::string self = "5:cpu,cpuacct:/j\n4:memory:/j\n";
  EXPECT_EQ(cgroup_cores(of(self, "cpu")), 0.5);
  EXPECT_EQ(cgroup_throttled(of(self, "cpu")), 1.5);
  EXPECT_EQ(cgroup_memory(of(self, "memory")), 1073741824U);
}

TEST_F(CgroupFiles, WithoutFilesThereIsNoLimit) {
  const Directories own = of("0::/gone\n", "cpu");
  EXPECT_EQ(cgroup_cores(own), 0);
  EXPECT_EQ(cgroup_memory(own), 0U);
  EXPECT_EQ(cgroup_throttled(own), 0);
}

}  // namespace
}  // namespace sinew
