// Who is at a study, and whose turn it is: by locks that die with their holder.
#include "study/processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "rundir/rundir.h"

namespace sinew::study {
namespace {

struct StudyProcesses : testing::Test {
  StudyProcesses() {
    system_disk().remove_all(folder);
    system_disk().make_directories(folder + "/trials/00000");
  }
  std::string folder = testing::TempDir() + "study_processes", trial = folder + "/trials/00000";
};

TEST_F(StudyProcesses, OneDecidesAtATime) {
  StudyProcess one(system_disk(), folder, system_clock()), two(system_disk(), folder, system_clock());
  EXPECT_NE(one.name(), two.name());
  auto turn = one.turn();
  ASSERT_TRUE(turn);
  EXPECT_FALSE(two.turn());
  turn.reset();
  EXPECT_TRUE(two.turn());
}

// Waiting for a turn, or asking for the next, would never end.
TEST_F(StudyProcesses, WhatCanNotBeLockedIsNobodysTurn) {
  const StudyProcess here(system_disk(), folder, system_clock());
  system_disk().remove_file(folder + "/.lock");
  system_disk().make_directories(folder + "/.lock");  // open() refuses it, also to root
  EXPECT_THROW(here.turn(), Error);
  EXPECT_THROW(here.next_turn(), Error);
  EXPECT_THROW(StudyProcess(system_disk(), folder, system_clock()), Error);
}

// A child that is at the study, in its turn, and is killed.
TEST_F(StudyProcesses, WhoDiesHoldsNothingAndLeavesItsTrials) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    StudyProcess there(system_disk(), folder, system_clock());
    const auto turn = there.turn();
    const auto run = rundir::RunLock::take(trial);
    if (turn && run && ::write(pipe_ends[1], there.name().c_str(), there.name().size() + 1) > 0) ::pause();
    ::_exit(1);
  }
  char name[512] = {};
  ASSERT_GT(::read(pipe_ends[0], name, sizeof name - 1), 0);
  EXPECT_FALSE(rundir::RunLock::take(folder)) << "it is that one's turn";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);

  StudyProcess here(system_disk(), folder, system_clock());
  EXPECT_TRUE(here.turn());
  EXPECT_TRUE(here.abandoned(name, trial));
  EXPECT_FALSE(here.abandoned(here.name(), trial)) << "it lives";
  EXPECT_EQ(system_disk().list(folder + "/.sinew/processes").size(), 1U) << "the dead one is swept away";
  EXPECT_TRUE(here.abandoned("", trial)) << "from a record that names nobody";
  EXPECT_TRUE(here.abandoned("../../trials/00000", trial)) << "no name of a process";
  const auto still = rundir::RunLock::take(trial);
  EXPECT_FALSE(here.abandoned(name, trial)) << "something of it still holds the run";
}

}  // namespace
}  // namespace sinew::study
