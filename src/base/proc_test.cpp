// Tests the code that reads facts about processes and the machine from the kernel's files under /proc and /sys.
#include "base/proc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/process.h"

namespace sinew {
namespace {

constexpr const char* kStat =
    "cpu  100 200 300 400 500 600 700 800 900 1000\n"
    "cpu0 10 2 30 9999 9999 6 7 8 0 0\n"
    "cpu1 1000 0 0 0 0 0 0 0 0 0\n"
    "cpu12 5 0 0 0 0 0 0 0 0 0\n"
    "intr 12345\n";

TEST(Proc, ReadsAProcessWhateverItsName) {
  const ProcessRow row = parse_stat(
      "42 (a) S 1 (b c) R 7 42 42 0 -1 4194304 1 2 3 4 100 20 5 6 20 0 3 0 9876 1000000 50 18446744073709551615 1 1");
  EXPECT_EQ(row.pid, 42);
  EXPECT_EQ(row.parent, 7);
  EXPECT_EQ(row.state, 'R');
  EXPECT_EQ(row.cpu_ticks, 120U);
  EXPECT_EQ(row.gone_ticks, 11U);
  EXPECT_EQ(row.threads, 3);
  EXPECT_EQ(row.started, 9876U);
  EXPECT_EQ(row.memory_bytes, 50 * ::sysconf(_SC_PAGESIZE));
  for (const char* text : {"", "42", "42 (a", "42 (a)", "42 (a) S", "42 (a) S 1 2 3"})
    EXPECT_EQ(parse_stat(text).pid, 0) << text;
}

TEST(Proc, BelowGivesAllDescendants) {
  const auto row = [](pid_t pid, pid_t parent) {
    ProcessRow one;
    one.pid = pid;
    one.parent = parent;
    return one;
  };
  const std::vector<ProcessRow> all = {row(5, 4), row(2, 1), row(3, 2), row(4, 3), row(9, 1), row(1, 0), row(7, 7)};
  std::vector<pid_t> found;
  for (const ProcessRow& one : below(all, {2})) found.push_back(one.pid);
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<pid_t>{3, 4, 5}));
  EXPECT_TRUE(below(all, {7}).empty());
}

TEST(Proc, BusySecondsLeaveOutWaiting) {
  EXPECT_EQ(busy_seconds(kStat, {0}, 1), 63) << "not what is idle or waits for a disk";
  EXPECT_EQ(busy_seconds(kStat, {0, 12}, 1), 68);
  EXPECT_EQ(busy_seconds(kStat, {1}, 100), 10);
  EXPECT_EQ(busy_seconds(kStat, {7, 100}, 1), 0) << "the sum of all is no core";
  EXPECT_EQ(busy_seconds("", {0}, 1), 0);
}

TEST(Proc, AProcessAges) {
  const double before = process_age_seconds();
  EXPECT_GT(before, 0);
  usleep(50'000);
  EXPECT_GE(process_age_seconds(), before + 0.04);
}

TEST(Proc, ThisMachineHasCoresToUse) {
  EXPECT_GE(own_cores().size(), 1U);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), static_cast<int64_t>(own_cores().size()));
}

// The CPU time of a child and of the child's own children counts as this process's own, both before and after they end.
TEST(Proc, CountsTheCpuTimeOfChildrenAsOwn) {
  const std::set<int> cores = own_cores();
  const CpuTimes before = cpu_times(cores);
  ProcessOptions options;
  options.command = {"/bin/sh", "-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; sleep 60"};
  Process process(options);
  const auto used = [&] { return cpu_times(cores).own - before.own; };
  while (process_row(process.pid()).gone_ticks < 10 && !process.wait()) usleep(1000);
  const double alive = used();
  EXPECT_GE(alive, 0.1);
  process.send(SIGKILL);
  while (!process.wait()) usleep(1000);
  EXPECT_GE(used(), alive - 0.02) << "in ticks there, exactly here";
  EXPECT_GE(cpu_times(cores).busy, before.busy);
}

}  // namespace
}  // namespace sinew
