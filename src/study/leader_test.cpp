// Tests the locks that show which leaders of a study are alive and which leader decides. A lock ends with its process.
#include "study/leader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"

namespace sinew::study {
namespace {

struct StudyLeaders : testing::Test {
  StudyLeaders() {
    system_disk().remove_all(folder);
    system_disk().make_directories(folder + "/trials/00000");
  }
  std::string folder = testing::TempDir() + "study_leaders", trial = folder + "/trials/00000";
};

TEST_F(StudyLeaders, OneDecidesAtATime) {
  StudyLeader one(system_disk(), folder, system_clock()), two(system_disk(), folder, system_clock());
  EXPECT_NE(one.name(), two.name());
  auto lock = one.try_lock();
  ASSERT_TRUE(lock);
  EXPECT_FALSE(two.try_lock());
  lock.reset();
  EXPECT_TRUE(two.try_lock());
}

// This must be an error: a leader that waited for the lock would wait forever.
TEST_F(StudyLeaders, ADirectoryThatCannotBeLockedIsAnError) {
  const StudyLeader leader(system_disk(), folder, system_clock());
  system_disk().remove_file(folder + "/.lock");
  system_disk().make_directories(folder + "/.lock");  // open() refuses a directory even for root
  EXPECT_THROW(leader.try_lock(), Error);
  EXPECT_THROW(leader.lock(), Error);
  EXPECT_THROW(StudyLeader(system_disk(), folder, system_clock()), Error);
}

// A child leads the study, holds the study's lock, and is killed.
TEST_F(StudyLeaders, ADeadLeaderHoldsNothingAndAbandonsItsTrials) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    StudyLeader there(system_disk(), folder, system_clock());
    const auto lock = there.try_lock();
    const auto run = rundir::RunLock::take(trial);
    if (lock && run && ::write(pipe_ends[1], there.name().c_str(), there.name().size() + 1) > 0) ::pause();
    ::_exit(1);
  }
  char name[512] = {};
  ASSERT_GT(::read(pipe_ends[0], name, sizeof name - 1), 0);
  EXPECT_FALSE(rundir::RunLock::take(folder)) << "the child holds it";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);

  StudyLeader here(system_disk(), folder, system_clock());
  EXPECT_TRUE(here.try_lock());
  EXPECT_TRUE(here.abandoned(name, trial));
  EXPECT_FALSE(here.abandoned(here.name(), trial)) << "it is alive";
  EXPECT_EQ(system_disk().list(folder + "/.sinew/processes").size(), 1U) << "the dead leader's directory is removed";
  EXPECT_TRUE(here.abandoned("", trial)) << "a record that names no leader";
  EXPECT_TRUE(here.abandoned("../../trials/00000", trial)) << "not the name of a leader";
  const auto still = rundir::RunLock::take(trial);
  EXPECT_FALSE(here.abandoned(name, trial)) << "a process of the dead leader still holds the run";
}

}  // namespace
}  // namespace sinew::study
