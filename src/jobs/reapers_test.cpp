// Tests the processes of an attempt if control groups or programs cannot be used, and if processes do not end.
#include "jobs/reapers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/process.h"
#include "jobs/cgroup.h"
#include "jobs/jobs.h"

namespace sinew::jobs {
namespace {

namespace fs = std::filesystem;

constexpr double kLong = 60;  // a limit that is long enough for slow machines

class Reapers : public ::testing::Test {
 protected:
  Reapers() {
    std::string pattern = (fs::temp_directory_path() / "sinew-reapers-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    prepare_process();
    ::alarm(300);
  }
  ~Reapers() override {
    ::alarm(0);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  AttemptStart start_of(const std::string& script, int ranks = 1) const {
    AttemptStart start;
    for (int rank = 0; rank < ranks; ++rank) {
      RankStart one;
      one.command = {"/bin/bash", "-c", script};
      one.environment = {"PATH=/usr/bin:/bin", "FOLDER=" + folder_};
      one.output = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      one.errors = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      start.ranks.push_back(one);
    }
    return start;
  }
  static ReaperEvent next_event(RankProcesses& processes) {
    for (;;) {
      if (auto event = processes.next()) return *event;
      pollfd one{processes.descriptor(), POLLIN, 0};
      ::poll(&one, 1, 1000);
    }
  }
  bool has(const char* name) const { return fs::exists(folder_ + "/" + name); }
  void wait_for(const char* name) const {
    while (!has(name)) ::usleep(2000);
  }

  std::string folder_;
};

using EventKind = ReaperEvent::Kind;

TEST_F(Reapers, ARankThatCannotEnterItsGroupDoesNotStart) {
  AttemptStart start = start_of("touch $FOLDER/began");
  start.groups = {folder_};
  RankProcesses processes(start);
  const ReaperEvent event = next_event(processes);
  EXPECT_EQ(event.kind, EventKind::no_start);
  EXPECT_EQ(event.fault, ReaperEvent::Fault::group);
  EXPECT_EQ(event.code, ENOENT);
  EXPECT_EQ(next_event(processes).kind, EventKind::gone);
  EXPECT_TRUE(processes.finish(kLong));
  EXPECT_FALSE(has("began"));
}

TEST_F(Reapers, AGroupThatCannotBeEnteredIsNotUsed) {
  CgroupPaths paths;
  paths.by_controller = {{"memory", folder_}, {"cpu", folder_}};
  spec::ResourceOptions resources;
  resources.memory = 1 << 30;
  resources.cpus = 2;
  const Limits limits = make_groups(paths, "mark", resources);
  EXPECT_TRUE(limits.groups.empty());
  EXPECT_TRUE(limits.enforced.empty());
  EXPECT_NE(limits.why_not.find("cannot be entered"), std::string::npos) << limits.why_not;
  const size_t cpus = limits.why_not.find("resources.cpus");
  ASSERT_NE(cpus, std::string::npos);
  EXPECT_LT(limits.why_not.find("checks it"), cpus) << "memory is checked";
  EXPECT_EQ(limits.why_not.find("checks it", cpus), std::string::npos) << limits.why_not;
  EXPECT_FALSE(has("sinew-mark"));
}

// SIGTERM ends the rank's shell at once. The process for which the shell waits first saves its state.
TEST_F(Reapers, AProcessBelowAnEndedShellHasItsGrace) {
  const char* script =
      R"(bash -c 'trap "sleep 0.3; touch $FOLDER/saved; exit" TERM; touch $FOLDER/began; while :; do sleep 0.01; done'; true)";
  RankProcesses processes(start_of(script, 2));
  EXPECT_EQ(next_event(processes).kind, EventKind::started);
  EXPECT_EQ(next_event(processes).kind, EventKind::started);
  wait_for("began");
  processes.signal_ranks(SIGTERM);
  EXPECT_EQ(next_event(processes).kind, EventKind::ended);
  EXPECT_EQ(next_event(processes).kind, EventKind::ended);
  EXPECT_EQ(next_event(processes).kind, EventKind::gone);
  EXPECT_TRUE(processes.finish(kLong));
  EXPECT_TRUE(has("saved"));
}

TEST_F(Reapers, KillsAProcessThatIgnoresSigterm) {
  const char* script = R"(bash -c 'trap "" TERM; touch $FOLDER/began; while :; do sleep 0.01; done'; true)";
  RankProcesses processes(start_of(script));
  EXPECT_EQ(next_event(processes).kind, EventKind::started);
  wait_for("began");
  processes.signal_ranks(SIGTERM);
  EXPECT_EQ(next_event(processes).kind, EventKind::ended);
  processes.kill_all();
  EXPECT_EQ(next_event(processes).kind, EventKind::gone);
  EXPECT_TRUE(processes.finish(kLong));
}

// Starts a process that has SINEW_JOB_ID=<mark> in its environment.
Process sleeper(const std::string& mark) {
  ProcessOptions options;
  options.command = {"/bin/sleep", "1000"};
  options.environment["SINEW_JOB_ID"] = mark;
  return Process(options);
}

TEST_F(Reapers, ASweepThatCannotFinishThrows) {
  Process process = sleeper("sweep-" + folder_);
  EXPECT_THROW(sweep("sweep-" + folder_, {}, ::geteuid(), 0), Error);
  EXPECT_EQ(sweep("no such mark", {}, ::geteuid(), kLong), 0);
}

// The run may belong to any user. The user who cleans up may have more rights than the owner.
TEST_F(Reapers, ASweepKillsOnlyProcessesThatTheRunsOwnerMayKill) {
  const std::string mark = "owner-" + folder_, folder = folder_ + "/sinew-" + mark;
  Process process = sleeper(mark);
  fs::create_directories(folder);
  std::ofstream(folder + "/cgroup.procs") << process.pid() << "\n";
  EXPECT_EQ(sweep("no such mark", {folder}, ::geteuid(), kLong), 0) << "of another attempt";
  EXPECT_FALSE(is_group_of(folder, mark)) << "it is an ordinary directory";
  EXPECT_THROW(sweep(mark, {}, ::geteuid() + 1, kLong), Error);
  EXPECT_FALSE(process.wait());
  EXPECT_EQ(sweep(mark, {}, ::geteuid(), kLong), 1);
  EXPECT_TRUE(process.wait(kLong));
}

}  // namespace
}  // namespace sinew::jobs
