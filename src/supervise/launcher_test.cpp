#include "supervise/launcher.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "base/random.h"

namespace sinew::supervise {
namespace {

using By = Launch::By;

const Environment kTorch = {{"RANK", "5"},        {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "a"}, {"PATH", "/bin"}};
const Environment kMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                          {"OMPI_COMM_WORLD_SIZE", "6"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
const Environment kSlurm = {{"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "6"},
                            {"SLURM_NTASKS", "7"},         {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "3"},         {"SLURM_STEP_NUM_TASKS", "7"},
                            {"SLURM_TASKS_PER_NODE", "9"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

std::string error_of(const Environment& environment) {
  try {
    launch_of(environment);
  } catch (const UsageError& error) {
    EXPECT_NE(error.hint, "");
    return error.what();
  }
  return "no error";
}

TEST(Launch, ReadsTheVariablesOfEachLauncher) {
  EXPECT_EQ(launch_of({}), std::nullopt);
  EXPECT_EQ(launch_of({{"PATH", "/bin"}, {"LOCAL_RANK", ""}, {"RANK", ""}}), std::nullopt);
  EXPECT_EQ(launch_of(kTorch), (Launch{5, 8, 1, 4, By::torchrun}));
  EXPECT_EQ(launch_of(kMpi), (Launch{3, 6, 0, 3, By::open_mpi}));
  EXPECT_EQ(launch_of(kSlurm), (Launch{6, 7, 0, 1, By::slurm}));
  EXPECT_EQ(launch_of(with(kSlurm, {{"SLURM_NODEID", "1"}, {"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "1"}})),
            (Launch{3, 7, 1, 2, By::slurm}));
}

TEST(Launch, TheInnermostLauncherCounts) {
  EXPECT_EQ(launch_of(with(kSlurm, kMpi))->by, By::open_mpi);
  EXPECT_EQ(launch_of(with(with(kSlurm, kMpi), kTorch))->by, By::torchrun);
}

TEST(Launch, ASlurmStepCountsInsteadOfItsJob) {
  // The environment of "sbatch -n 16" with "srun -n 7" inside it.
  EXPECT_EQ(launch_of(with(kSlurm, {{"SLURM_NTASKS", "16"}, {"SLURM_TASKS_PER_NODE", "4(x4)"}}))->size, 7);
  Environment old = kSlurm;
  old.erase("SLURM_STEP_NUM_TASKS");
  old.erase("SLURM_STEP_TASKS_PER_NODE");
  old["SLURM_TASKS_PER_NODE"] = "1,2,3,1";
  EXPECT_EQ(launch_of(old), (Launch{6, 7, 0, 1, By::slurm}));
  Environment script = kSlurm;  // the environment of the batch script itself
  script.erase("SLURM_STEP_ID");
  EXPECT_EQ(launch_of(script), std::nullopt);
}

TEST(Launch, TheErrorNamesAMissingVariable) {
  for (const Environment& all : {kTorch, kMpi, kSlurm}) {
    for (const auto& [name, value] : all) {
      if (name == "MASTER_ADDR" || name == "PATH" || name.starts_with("SLURM_STEP") || name == "SLURM_NTASKS" ||
          name == "SLURM_TASKS_PER_NODE")
        continue;
      Environment less = all;
      less.erase(name);
      EXPECT_TRUE(error_of(less).starts_with(name + " is not set, though other variables of ")) << error_of(less);
    }
  }
  Environment none = kSlurm;
  none.erase("SLURM_STEP_TASKS_PER_NODE");
  none.erase("SLURM_TASKS_PER_NODE");
  EXPECT_TRUE(error_of(none).starts_with("SLURM_TASKS_PER_NODE is not set"));
}

TEST(Launch, TheErrorNamesAnInvalidVariable) {
  const struct {
    Environment environment;
    const char *name, *value;
  } cases[] = {
      {kTorch, "RANK", "8"},
      {kTorch, "RANK", "-1"},
      {kTorch, "RANK", "two"},
      {kTorch, "RANK", "5 "},
      {kTorch, "WORLD_SIZE", "0"},
      {kTorch, "WORLD_SIZE", "99999999999999999999"},
      {kTorch, "LOCAL_RANK", "4"},
      {kTorch, "LOCAL_WORLD_SIZE", "9"},
      {kMpi, "OMPI_COMM_WORLD_RANK", "6"},
      {kMpi, "OMPI_COMM_WORLD_LOCAL_RANK", "3"},
      {kMpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "0"},
      {kSlurm, "SLURM_PROCID", "7"},
      {kSlurm, "SLURM_LOCALID", "1"},
      {kSlurm, "SLURM_NODEID", "4"},
      {kSlurm, "SLURM_NODEID", "x"},
      {kSlurm, "SLURM_STEP_TASKS_PER_NODE", "2(x3),8"},
      {kSlurm, "SLURM_STEP_TASKS_PER_NODE", "2(x3"},
      {kSlurm, "SLURM_STEP_TASKS_PER_NODE", "2(x"},
      {kSlurm, "SLURM_STEP_TASKS_PER_NODE", "(x3),1"},
      {kSlurm, "SLURM_STEP_TASKS_PER_NODE", "2(xx),1"},
      {kSlurm, "SLURM_STEP_TASKS_PER_NODE", ","},
      {kSlurm, "SLURM_STEP_TASKS_PER_NODE", "2(x0),1"},
  };
  for (const auto& one : cases) {
    const std::string error = error_of(with(one.environment, {{one.name, one.value}}));
    EXPECT_NE(error.find(one.name), std::string::npos) << one.name << "=" << one.value << ": " << error;
  }
  EXPECT_NE(error_of(with(kTorch, {{"LOCAL_RANK", "3"}, {"RANK", "2"}})).find("LOCAL_RANK"), std::string::npos);
}

TEST(Launch, RandomVariablesGiveAValidLaunchOrAnError) {
  RandomStream random(random_key({8}));
  for (int i = 0; i < 20'000; ++i) {
    Environment environment = std::array{kTorch, kMpi, kSlurm}[random.below(3)];
    for (auto& [name, value] : environment) {
      if (random.below(4) == 0) value = std::to_string(random.below(9));
      if (random.below(12) == 0 && !value.empty()) value[random.below(value.size())] = "(x),19 "[random.below(7)];
    }
    try {
      const auto launch = launch_of(environment);
      if (!launch) continue;
      EXPECT_TRUE(launch->rank >= 0 && launch->rank < launch->size);
      EXPECT_TRUE(launch->local_rank >= 0 && launch->local_rank < launch->local_size);
      EXPECT_LE(launch->local_size, launch->size);
    } catch (const UsageError&) {
    }
  }
}

TEST(Launch, WorkersShareCoresUnlessTheLauncherDividedThem) {
  const Launch torch{0, 8, 0, 4, By::torchrun}, slurm{0, 8, 0, 4, By::slurm}, mpi{0, 8, 0, 4, By::open_mpi};
  for (const Launch& launch : {torch, slurm, mpi}) EXPECT_EQ(sharers(launch, 16, 16), 4);
  EXPECT_EQ(sharers(slurm, 4, 16), 1);
  EXPECT_EQ(sharers(mpi, 1, 16), 1);
  EXPECT_EQ(sharers(slurm, 8, 16), 4);
  EXPECT_EQ(sharers(torch, 4, 16), 4);
  EXPECT_EQ(sharers({0, 8, 0, 1, By::slurm}, 16, 16), 1);
}

// A run that other machines can reach uses TLS unless the user says otherwise.
TEST(Launch, ARunIsExposedUnlessItListensOnLoopbackAddresses) {
  for (const char* inside : {"127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"}) {
    EXPECT_FALSE(is_exposed(inside)) << inside;
    EXPECT_FALSE(is_exposed(inside, "127.0.0.1")) << inside;
    EXPECT_TRUE(is_exposed(inside, "10.0.0.1")) << "the links of the workers are reachable";
  }
  for (const char* outside : {"0.0.0.0", "10.0.0.1", "::", "192.0.2.1", "node1", "127.0.0.1.example.com", ""})
    EXPECT_TRUE(is_exposed(outside)) << outside;
}

}  // namespace
}  // namespace sinew::supervise
