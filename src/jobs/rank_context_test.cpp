// Tests the command line and the environment of a rank.
#include "jobs/rank_context.h"

#include <gtest/gtest.h>

#include "jobs/samples.h"

namespace sinew::jobs {
namespace {

TEST(RankContext, FillsInParameters) {
  EXPECT_EQ(command_of(job_of("params: {lr: 1e-3}")), (std::vector<std::string>{"a", "1e-3", "{x}"}));
}

TEST(RankContext, LaterSourcesOverrideEarlierOnes) {
  const spec::Job job = job_of(
      "params: {lr: 1e-3, who: me}\nenv: {A: 'for {params.who}', MASTER_PORT: 5}\nresources: {nproc: 2, cpus: 8}");
  const RankContext context = {1, 2, "/runs/x", "mark", "/runs/x/checkpoints/1", "/m", 1234, "", ""};
  const auto environment =
      environment_of(job, context, {{"A", "old"}, {"RANK", "7"}, {"SINEW_RESUME_FROM", "old"}, {"HOME", "/h"}});
  EXPECT_EQ(environment.at("A"), "for me");
  EXPECT_EQ(environment.at("RANK"), "1");
  EXPECT_EQ(environment.at("WORLD_SIZE"), "2");
  EXPECT_EQ(environment.at("MASTER_PORT"), "5");
  EXPECT_EQ(environment.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(environment.at("HOME"), "/h");
  EXPECT_EQ(environment.at("SINEW_PARAM_LR"), "1e-3");
  EXPECT_EQ(environment.at("SINEW_RESUME_FROM"), "/runs/x/checkpoints/1");
  EXPECT_FALSE(environment.contains("MLFLOW_RUN_ID"));
}

}  // namespace
}  // namespace sinew::jobs
