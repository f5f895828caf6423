// Tests population-based training. A trial that runs a command ends its generation at the right evaluation, even if
// earlier processes of the trial made some of the evaluations. A trial gets a copy of another trial's state.
#include "study/generations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/expected_error.h"
#include "base/faulty_disk.h"
#include "checkpoint/checkpoint.h"

namespace sinew::study {
namespace {

// Returns the number of the evaluation that ends the generation, or 0 if no evaluation ends it.
int64_t evaluation_that_ends(GenerationEnd end, const std::vector<int64_t>& evaluations) {
  int64_t ended_at = 0;
  for (const int64_t evaluation : evaluations) {
    if (!end.ends_at(evaluation)) continue;
    EXPECT_EQ(ended_at, 0) << "ends_at() returns true once";
    ended_at = evaluation;
  }
  EXPECT_EQ(end.reached(), ended_at > 0);
  return ended_at;
}

TEST(GenerationEnd, ComesAtTheLastEvaluation) {
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3), {1, 2}), 0);
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3), {1, 2, 3, 4}), 3);
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(), {1, 2, 3, 1000000}), 0);
}

TEST(GenerationEnd, CountsEvaluationsOfEarlierProcesses) {
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 2), {1, 2, 3}), 3);
}

TEST(GenerationEnd, TrainsOnceMoreIfTheEarlierProcessDidNotSave) {
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 3), {1, 2, 3}), 0) << "the earlier process measured all of them";
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 4), {1, 2, 3, 4, 5}), 5);
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 4), {1, 2, 3, 4, 1, 2, 3, 4}), 3)
      << "the new process started from an earlier state, so its evaluations count from 1 again";
}

TEST(Generations, CopyAStateOnTheDiskOfTheStudy) {
  FaultyDisk disk;
  spec::Job job;
  job.tune.trials = 4;
  job.tune.population = 2;
  const auto directory_of = [](int64_t id) { return "/study/trial-" + std::to_string(id); };
  const Generations generations(disk, job, 2, directory_of, nullptr);
  EXPECT_ERROR(error_of([&] { generations.copy_state(2, 1); }), "STUDY_CHECKPOINT_MISSING", "trial 1");

  disk.make_directories("/study/trial-1/checkpoints");
  checkpoint::Snapshot state;
  state.step = Step(7);
  state.parts["model"] = {};
  state.state_json = "{}";
  checkpoint::save(disk, "/study/trial-1/checkpoints", state, 0);
  generations.copy_state(2, 1);
  const auto copies = checkpoint::list(disk, "/study/trial-2/checkpoints");
  ASSERT_EQ(copies.size(), 1);
  EXPECT_EQ(checkpoint::load(disk, copies[0])->step, Step(7));
  EXPECT_EQ(read_text(disk, "/study/trial-2/checkpoints/.carried"), "step-00000007\n")
      << "the training may begin with a state of other options";
}

}  // namespace
}  // namespace sinew::study
