// Tests how control groups are found, and the report of limits that cannot be enforced.
#include "jobs/cgroup.h"

#include <gtest/gtest.h>

namespace sinew::jobs {
namespace {

constexpr const char* kMounts =
    "24 1 0:22 / /proc rw shared:5 - proc proc rw\n"
    "30 24 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
    "31 24 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(Cgroups, AreFoundInBothVersions) {
  const CgroupPaths paths =
      parse_cgroup_paths("12:memory:/user.slice\n3:cpu,cpuacct:/docker/abc/x\n1:name=systemd:/\n0::/a/b\n", kMounts);
  EXPECT_EQ(paths.unified, "/sys/fs/cgroup/unified/a/b");
  EXPECT_EQ(paths.by_controller, (std::map<std::string, std::string>{{"cpu", "/sys/fs/cgroup/cpu,cpuacct/x"},
                                                                     {"cpuacct", "/sys/fs/cgroup/cpu,cpuacct/x"},
                                                                     {"memory", "/sys/fs/cgroup/memory/user.slice"}}));
  EXPECT_EQ(parse_cgroup_paths("0::/\n", kMounts).unified, "/sys/fs/cgroup/unified");
  EXPECT_EQ(parse_cgroup_paths("", ""), CgroupPaths{});
  EXPECT_EQ(parse_cgroup_paths("::\n:\n0:\n\n12:memory", "- - -\n1 2 3 - cgroup\n"), CgroupPaths{});
}

TEST(Cgroups, ReportsGroupsThatCannotBeCreated) {
  CgroupPaths paths;
  paths.unified = "/no/such/directory";
  paths.by_controller["memory"] = "/no/such/directory";
  spec::ResourceOptions resources;
  EXPECT_TRUE(make_groups(paths, "m", resources).why_not.empty());
  resources.memory = 1 << 20;
  resources.cpus = 1;
  const Limits limits = make_groups(paths, "m", resources);
  EXPECT_TRUE(limits.groups.empty());
  EXPECT_TRUE(limits.enforced.empty());
  EXPECT_NE(limits.why_not.find("resources.memory: "), std::string::npos) << limits.why_not;
  EXPECT_NE(limits.why_not.find("resources.cpus: "), std::string::npos) << limits.why_not;
}

}  // namespace
}  // namespace sinew::jobs
