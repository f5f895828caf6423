// Tests that /proc shows the processes of this machine, and that processes with a mark are found by it.
#include "jobs/descendants.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace sinew::jobs {
namespace {

TEST(Descendants, FindThisProcess) {
  const std::vector<ProcessRow> all = all_processes();
  const auto self = std::ranges::find(all, ::getpid(), &ProcessRow::pid);
  ASSERT_NE(self, all.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_GT(self->memory_bytes, 0);
  EXPECT_TRUE(processes_marked(all, "no process has this mark").empty());
}

}  // namespace
}  // namespace sinew::jobs
